package redistest_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// holdVariable makes TestSharedIsOneServer hold its server until the process is killed.
const holdVariable = "REDISTEST_HOLD"

// child is this test binary in another process, running one test with other variables.
func child(t *testing.T, test string, env ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func TestMissingServerFailsAndNamesTheScript(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"none on PATH": {"HEADWATER_REDIS_SERVER=", "PATH=" + t.TempDir()},
		"wrong name":   {"HEADWATER_REDIS_SERVER=/nowhere/redis-server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := child(t, "TestServerAllowsDebugCommands", env...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), "--- FAIL")
			require.Contains(t, string(out), "scripts/ensure-redis.sh")
		})
	}
}

func TestWrongConfigurationFailsWithTheServersWords(t *testing.T) {
	t.Parallel()
	out, err := child(t, "TestStandaloneTakesConfiguration", "REDISTEST_MAXMEMORY=much").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "FATAL CONFIG FILE ERROR")
}

func TestServersEndWithTheTestProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := child(t, "TestSharedIsOneServer", holdVariable+"=1", "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addr = strings.TrimSpace(addr)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		files, _ := os.ReadDir(dir)
		return err != nil && len(files) == 0
	}, eventually, tick)
}
