package lua_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

// scripts are the texts of all scripts there are, by file name.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = string(text)
	}
	return texts
}

var comment = regexp.MustCompile(`(?m)--.*$`)

func code(text string) string { return comment.ReplaceAllString(text, "") }

var keyNumber = regexp.MustCompile(`KEYS\[(\d+)\]`)

// keyCount is the highest key that a script names.
func keyCount(t *testing.T, text string) int {
	t.Helper()
	n := 0
	for _, m := range keyNumber.FindAllStringSubmatch(code(text), -1) {
		i, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		n = max(n, i)
	}
	return n
}

// Each key in turn lies in another slot than the others: the cluster refuses to begin.
func TestCLU02_ScriptsWithKeysInDifferentSlotsAreRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.SharedCluster(t).Client(t)
	for file, text := range scripts(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			n := keyCount(t, text)
			require.Positive(t, n, "it declares its keys")
			for astray := 1; astray < n; astray++ {
				var keys []string
				for i := range n {
					tag := "{" + file + " here}"
					if i == astray {
						tag = "{" + file + " elsewhere}"
					}
					keys = append(keys, tag+strconv.Itoa(i))
				}
				err := rdb.Eval(t.Context(), text, keys, "1", "1", "1", "1", "1", "1").Err()
				require.True(t, redis.HasErrorPrefix(err, "CROSSSLOT"), "key %d astray: %v", astray+1, err)
				for _, key := range keys {
					require.Zero(t, rdb.Exists(t.Context(), key).Val(), key)
				}
			}
		})
	}
}

var (
	call       = regexp.MustCompile(`\b(?:redis\.)?p?call\(\s*'([A-Z]+)'\s*((?:,[^,()]*)*)`)
	assignment = regexp.MustCompile(`(\w+(?:\s*,\s*\w+)*)\s*=([^=\n].*)`)
	firstKey   = regexp.MustCompile(`^\s*KEYS\[[^\]]+\]\s*(?:end|;|$)`)
	isKey      = regexp.MustCompile(`^KEYS\[[^\]]+\]$`)
	keyless    = []string{"TIME", "COMMAND"}
	// nested commands have their key after a word of their own.
	nested = []string{"XGROUP", "XINFO", "OBJECT", "MEMORY"}
)

// keyNames are the names that a script gives to its keys, and to nothing else.
func keyNames(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range assignment.FindAllStringSubmatch(text, -1) {
		values := strings.Split(m[2], ",") // an index holds no comma; what else does is no key
		for i, name := range strings.Split(m[1], ",") {
			name = strings.TrimSpace(name)
			key := i < len(values) && firstKey.MatchString(values[i])
			before, known := names[name]
			names[name] = key && (before || !known)
		}
	}
	return names
}

// foreign are the calls of a script whose key is not one of KEYS.
func foreign(text string) (found []string, calls int) {
	text = code(text)
	names := keyNames(text)
	ok := func(key string) bool { return isKey.MatchString(key) || names[key] }
	for _, m := range call.FindAllStringSubmatch(text, -1) {
		calls++
		command, args := m[1], strings.Split(strings.TrimPrefix(strings.TrimSpace(m[2]), ","), ",")
		for i := range args {
			args[i] = strings.TrimSpace(args[i])
		}
		at := 0
		switch {
		case slices.Contains(keyless, command):
			continue
		case slices.Contains(nested, command):
			at = 1
		case command == "XREADGROUP" || command == "XREAD":
			at = 1 + slices.Index(args, "'STREAMS'")
		}
		if at >= len(args) || !ok(args[at]) {
			found = append(found, fmt.Sprintf("%s %v", command, args))
		}
		if command == "UNLINK" || command == "DEL" || command == "EXISTS" {
			for _, key := range args[1:] {
				if !ok(key) {
					found = append(found, fmt.Sprintf("%s %v", command, args))
				}
			}
		}
	}
	return found, calls
}

func TestCLU02_ScriptsTouchNoKeyButThoseInKEYS(t *testing.T) {
	t.Parallel()
	for file, text := range scripts(t) {
		found, calls := foreign(text)
		require.Empty(t, found, file)
		mentioned := strings.Count(code(text), "call('")
		require.Equal(t, mentioned, calls, "%s: every call is written as call('COMMAND', key, …)", file)
	}
}

// The check itself finds what it is for.
func TestTheCheckOfKeysFindsForeignOnes(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"redis.call('GET', 'k')",
		"redis.pcall('SET', KEYS[1] .. ':x', 1)",
		"redis.call('GET', ARGV[1])",
		"local k = 'x' .. ARGV[1]\nredis.call('GET', k)",
		"local k = KEYS[1]\nk = k .. 'x'\nredis.call('GET', k)",
		"local k, g = ARGV[1], KEYS[1]\nredis.call('GET', k)",
		"local k = KEYS[1]\nif x then k = ARGV[1] end\nredis.call('GET', k)",
		"redis.call('UNLINK', KEYS[1], ARGV[1])",
		"redis.call('XINFO', 'CONSUMERS', ARGV[1], 'g')",
		"redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', ARGV[1], '>')",
	} {
		found, _ := foreign(bad)
		require.Len(t, found, 1, bad)
	}
	for _, good := range []string{
		"redis.call('GET', KEYS[1])",
		"local a, b = KEYS[1], KEYS[2]\nredis.call('SMOVE', a, b)",
		"local a, g = KEYS[1], ARGV[2]\nredis.call('XACK', a, g)",
		"local a\nif x then\n  a = KEYS[3]\nend\nredis.call('GET', a)",
		"redis.call('XINFO', 'CONSUMERS', KEYS[1], 'g')",
		"redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 1, 'STREAMS', KEYS[2], '>')",
		"for i = 1, #KEYS do redis.call('GET', KEYS[i]) end",
		"local t = redis.call('TIME')",
	} {
		found, calls := foreign(good)
		require.Empty(t, found, good)
		require.Equal(t, 1, calls, good)
	}
}

// What every script's text must be, whatever it does.
func TestScriptsKeepToTheRules(t *testing.T) {
	t.Parallel()
	for file, text := range scripts(t) {
		require.NotContains(t, text, "#!", "%s, SCR-08: a header without flags stops reads when memory is full", file)
		require.True(t, strings.HasPrefix(text, "-- "), "%s begins with what it does", file)
		require.Contains(t, text, "-- Returns", file)
		require.Contains(t, text, "-- KEYS", file)
	}
}
