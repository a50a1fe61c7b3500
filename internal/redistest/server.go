package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Server is one server process. Its methods may be called by any goroutine.
type Server struct {
	// Addr is "127.0.0.1:<port>"; it stays the same over restarts, but for [Cluster.Move].
	Addr string

	port   int
	dir    string
	config []string
	args   []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended; nil before the first start
}

var shared = sync.OnceValues(func() (*Server, error) { return newServer(nil) })

// Shared is a standalone server that all tests of the process share.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared()
	must(t, err)
	return s
}

// Standalone is a server of the test's own, stopped when the test ends. Each config is
// one line of redis.conf, such as "maxmemory 1mb"; they go after the package's own.
func Standalone(t testing.TB, config ...string) *Server {
	t.Helper()
	s, err := newServer(config)
	must(t, err)
	t.Cleanup(s.discard)
	return s
}

// newServer starts a server on a free port, and on another where somebody was faster.
func newServer(config []string, args ...string) (*Server, error) {
	if _, err := findProgram(); err != nil {
		return nil, err
	}
	files, err := findWorkspace()
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(files.dir, "")
		if err != nil {
			return nil, err
		}
		s := &Server{Addr: address(port), port: port, dir: dir, config: config, args: args}
		err = s.writeConfig()
		if err == nil {
			err = s.start()
		}
		if err == nil {
			return s, nil
		}
		s.discard()
		if !strings.Contains(err.Error(), "Address already in use") || attempt == 10 {
			return nil, err
		}
	}
}

func (s *Server) writeConfig() error {
	program, err := findProgram()
	if err != nil {
		return err
	}
	lines := []string{
		"port " + strconv.Itoa(s.port),
		"bind 127.0.0.1",
		"protected-mode no",
		"daemonize no",
		"dir " + s.dir,
		"logfile " + filepath.Join(s.dir, "log"),
	}
	if !s.sentinel() {
		lines = append(lines, `save ""`, "appendonly no",
			"repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1")
		if program.major >= 7 {
			lines = append(lines, "enable-debug-command local")
		}
	}
	lines = append(lines, s.config...)
	return os.WriteFile(filepath.Join(s.dir, "conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (s *Server) sentinel() bool { return len(s.args) > 0 && s.args[0] == "--sentinel" }

// start starts the process and waits until it answers.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return fmt.Errorf("server %s is running", s.Addr)
	}
	program, err := findProgram()
	if err != nil {
		return err
	}
	cmd := exec.Command(program.path, append([]string{filepath.Join(s.dir, "conf")}, s.args...)...)
	cmd.Dir = s.dir
	// Out of reach of a Ctrl-C: the watchdog ends it, once the tests have cleaned up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	pidFile := filepath.Join(s.dir, "pid")
	err = os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // how it ended shows in its log
		_ = os.Remove(pidFile)
		close(exited)
	}()
	if err == nil {
		err = s.awaitAnswer(exited)
	}
	if err != nil {
		s.signalLocked(syscall.SIGKILL)
		<-exited
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("start %s: %w\n%s%s", program.path, err, output.String(), log)
	}
	return nil
}

// awaitAnswer waits for any answer but LOADING; a demand for a password is one.
func (s *Server) awaitAnswer(exited <-chan struct{}) error {
	var ended bool
	err := poll("answer of "+s.Addr, func(context.Context) error {
		select {
		case <-exited:
			ended = true
			return nil
		default:
			return ping(s.Addr)
		}
	})
	if ended {
		return errors.New("it ended at once")
	}
	return err
}

// ping does without a client, which would log each refused connection.
func ping(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the answer is what counts
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.HasPrefix(answer, "-LOADING") {
		err = errors.New(answer)
	}
	return err
}

// Options are for a client of this server that the test wants to adjust.
func (s *Server) Options() *redis.Options {
	return &redis.Options{
		Addr:                     s.Addr,
		DialTimeout:              time.Second,
		ReadTimeout:              5 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Client is a new client of this server, closed when the test ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(s.Options())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *Server) running() bool {
	if s.exited == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// signalLocked sends sig to a process that runs.
func (s *Server) signalLocked(sig syscall.Signal) {
	if s.running() {
		_ = s.cmd.Process.Signal(sig) // it may just have ended, which is what exited tells
	}
}
