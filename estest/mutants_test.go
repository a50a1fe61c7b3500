package estest_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/memory"
)

// mutant is a wrong store, and the test of its suite that must find it out.
type mutant struct {
	caughtBy string
	run      func(t *testing.T)
}

func eventStore[S es.EventStore](caughtBy string, wrap func(*memory.EventStore) S) mutant {
	return mutant{caughtBy, func(t *testing.T) {
		estest.TestEventStore(t, func(*testing.T, ...es.Types) S { return wrap(memory.NewEventStore()) })
	}}
}

func scanner(caughtBy string, scan scanFunc) mutant {
	return mutant{caughtBy, func(t *testing.T) {
		estest.TestScanner(t, func(*testing.T, ...es.Types) badScanner { return badScanner{memory.NewEventStore(), scan} })
	}}
}

func outbox(caughtBy string, wrap func(badOutbox) badOutbox) mutant {
	return mutant{caughtBy, func(t *testing.T) {
		estest.TestOutbox(t, func(*testing.T, ...es.Types) badOutbox { return wrap(badOutbox{EventStore: memory.NewEventStore()}) })
	}}
}

func snapshots(caughtBy string, wrap func(*memory.SnapshotStore[estest.State]) es.SnapshotStore[estest.State]) mutant {
	return mutant{caughtBy, func(t *testing.T) {
		estest.TestSnapshotStore(t, func(*testing.T, ...es.Types) es.SnapshotStore[estest.State] {
			return wrap(memory.NewSnapshotStore[estest.State]())
		})
	}}
}

func prepareKey(caughtBy string, wrap func(*memory.PrepareKey[string]) es.PrepareKey[string]) mutant {
	return mutant{caughtBy, func(t *testing.T) {
		estest.TestPrepareKey(t,
			func(*testing.T) es.PrepareKey[string] { return wrap(memory.NewPrepareKey[string]()) },
			func(*testing.T) es.PrepareKey[estest.Holder] { return memory.NewPrepareKey[estest.Holder]() })
	}}
}

const mutantEnv = "ESTEST_MUTANT"

// TestMutant runs one mutant in a process of its own, for the test below.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	if name == "" {
		t.Skip("run by TestSuitesFindMutants")
	}
	mutants[name].run(t)
}

func TestSuitesFindMutants(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pattern := "^TestMutant$"
			for part := range strings.SplitSeq(m.caughtBy, "/") {
				pattern += "/^" + regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_")) + "$"
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern, "-test.v")
			cmd.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "not found out by %q:\n%s", m.caughtBy, out)
			require.Contains(t, string(out), fmt.Sprintf("--- FAIL: TestMutant/%s", strings.ReplaceAll(m.caughtBy, " ", "_")))
		})
	}
}
