package redistest

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// Start starts a server that was stopped or killed, on its old port and files, and
// waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	must(t, s.start())
}

// Kill ends the server at once, as a crash does, and waits until it is gone.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.stop(syscall.SIGKILL)
}

// Stop ends the server in order: it saves what it was configured to save.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.stop(syscall.SIGTERM)
}

// Restart stops the server and starts it again. Its data is lost, unless the test
// configured persistence.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

// Pause freezes the process: connections stay open and nothing answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signalLocked(syscall.SIGSTOP)
}

// Resume takes back a Pause.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signalLocked(syscall.SIGCONT)
}

func (s *Server) stop(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return
	}
	s.signalLocked(sig)
	s.signalLocked(syscall.SIGCONT) // a frozen process sees no SIGTERM
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
		s.signalLocked(syscall.SIGKILL)
		<-s.exited
	}
}

// discard ends the server and removes its files.
func (s *Server) discard() {
	s.stop(syscall.SIGKILL)
	_ = os.RemoveAll(s.dir) // what stays, the watchdog removes
}

// Knows reports whether the server has a command.
func (s *Server) Knows(t testing.TB, command string) bool {
	t.Helper()
	reply, err := s.Client(t).Do(t.Context(), "COMMAND", "INFO", command).Slice()
	must(t, err)
	return len(reply) == 1 && reply[0] != nil
}
