package redistest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
)

// binaryVariable is the environment variable that names the server program.
const binaryVariable = "HEADWATER_REDIS_SERVER"

// program is the server's path and its major version.
type program struct {
	path  string
	major int
}

var findProgram = sync.OnceValues(func() (program, error) {
	path, err := programPath(os.Getenv(binaryVariable))
	if err != nil {
		return program{}, err
	}
	out, err := exec.Command(path, "--version").CombinedOutput()
	if err != nil {
		return program{}, fmt.Errorf("%s --version: %w\n%s", path, err, out)
	}
	m := regexp.MustCompile(`v=(\d+)\.`).FindSubmatch(out)
	if m == nil {
		return program{}, fmt.Errorf("%s is no Redis or Valkey server: %s", path, out)
	}
	major, err := strconv.Atoi(string(m[1]))
	return program{path, major}, err
})

func programPath(configured string) (string, error) {
	if configured != "" {
		path, err := exec.LookPath(configured)
		if err != nil {
			return "", fmt.Errorf("%s: %w (scripts/ensure-redis.sh and scripts/fetch-servers.sh bring servers)", binaryVariable, err)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no redis-server or valkey-server on PATH, and " + binaryVariable + " is not set: run scripts/ensure-redis.sh")
}

// watchdog outlives the test process, however that ends: its standard input closes
// then, and it kills every server that still has a pid file, and removes their files.
const watchdog = `cat >/dev/null
for f in "$1"/*/pid; do [ -f "$f" ] && kill -9 "$(cat "$f")" 2>/dev/null; done
rm -rf "$1"`

// workspace is where the servers of this process keep their files.
type workspace struct {
	dir string
	// lifeline is the watchdog's standard input, open for as long as the process lives.
	lifeline io.Closer
}

var findWorkspace = sync.OnceValues(func() (workspace, error) {
	dir, err := os.MkdirTemp("", "headwater-redistest-")
	if err != nil {
		return workspace{}, err
	}
	cmd := exec.Command("sh", "-c", watchdog, "watchdog", dir)
	// A process group of its own: a signal for the tests must not end it before them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return workspace{}, err
	}
	return workspace{dir, lifeline}, cmd.Start()
})

// Ports lie below what systems give to outgoing connections, which could otherwise
// take a stopped server's port. A cluster's bus port is 10000 above: below them too.
const (
	firstPort = 11000
	lastPort  = 20999
	busOffset = 10000
)

func freePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if isFree(port) && isFree(port+busOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
