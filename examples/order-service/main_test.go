package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcome is the line that --json prints.
type outcome struct {
	Commands          int     `json:"commands"`
	Applied           int     `json:"applied"`
	Duplicates        int     `json:"duplicates"`
	Refused           int     `json:"refused"`
	OrdersPaid        int     `json:"orders_paid"`
	PaidTotal         string  `json:"paid_total"`
	ItemsPacked       int     `json:"items_packed"`
	PackagesDelivered int     `json:"packages_delivered"`
	Seconds           float64 `json:"seconds"`
	CommandsPerSecond float64 `json:"commands_per_second"`
}

// wholeLog is what is known of the log from elsewhere.
func wholeLog(applied, duplicates int) outcome {
	return outcome{
		Commands: 38685, Applied: applied, Duplicates: duplicates,
		OrdersPaid: 2000, PaidTotal: "4631233.45", ItemsPacked: 8159, PackagesDelivered: 1325,
	}
}

// lastLine reads the last line of a program's output, and drops how fast it was.
func lastLine(t *testing.T, stdout string) outcome {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	var o outcome
	in := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&o), "stdout: %q", stdout)
	require.Positive(t, o.Seconds)
	require.Positive(t, o.CommandsPerSecond)
	o.Seconds, o.CommandsPerSecond = 0, 0
	return o
}

func TestReportOfThePartsOfALog(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"--limit", "400", "--workers", "4", "--timeline", "990003"}, &stdout, &stderr)
	require.Equal(t, exitOK, code, "%s", &stderr)
	for _, part := range []string{
		"400 applied, 0 carried out before, 0 refused",
		"Orders by state",
		"commits heard on the event bus and ",
		"Revenue by month\n  2019-05  ████",
		"2019-05-20 10:30  order 990003     placed, 4 items for 2468.99",
		"2019-05-20 10:34  order 990003     confirmed",
		"2019-05-21 08:41  order 990003     paid, 2468.99",
		"2019-05-20 13:19  item 880009      out of stock",
	} {
		require.Contains(t, stdout.String(), part)
	}
	require.NotContains(t, stdout.String()+stderr.String(), "\x1b", "no colours where there is no terminal")
	require.Contains(t, stderr.String(), "100 %  400 of 400 commands")
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help":             {[]string{"--help"}, exitOK, "--timeline ORDER", ""},
		"unknown flag":     {[]string{"--fast"}, exitUsage, "", "fast"},
		"argument":         {[]string{"log.csv"}, exitUsage, "", `unexpected argument "log.csv"`},
		"worker's help":    {[]string{"worker", "--help"}, exitOK, "carry out commands until Ctrl-C", ""},
		"lonely worker":    {[]string{"worker"}, exitUsage, "", "worker needs --redis"},
		"lonely replay":    {[]string{"replay", "--json"}, exitUsage, "", "replay needs --redis"},
		"worker's limit":   {[]string{"worker", "--redis", "redis://x", "--limit", "1"}, exitUsage, "", "limit"},
		"worker's server":  {[]string{"worker", "--redis", "redis://127.0.0.1:1"}, exitFailed, "", "127.0.0.1:1"},
		"no workers":       {[]string{"--workers", "0"}, exitUsage, "", "--workers must be between"},
		"negative limit":   {[]string{"--limit", "-1"}, exitUsage, "", "--limit must not be negative"},
		"not a number":     {[]string{"--limit", "many"}, exitUsage, "", "limit"},
		"order not in log": {[]string{"--timeline", "1"}, exitUsage, "", `order "1" is not among`},
		"bad URL":          {[]string{"--redis", "http://localhost"}, exitUsage, "", "it must begin with redis://"},
		"nobody there":     {[]string{"--redis", "redis://127.0.0.1:1"}, exitFailed, "", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			require.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr), "%s", &stderr)
			require.Contains(t, stdout.String(), c.stdout)
			require.Contains(t, stderr.String(), c.stderr)
			if c.code == exitUsage {
				require.Contains(t, stderr.String(), "--help")
				require.Empty(t, stdout.String())
			}
		})
	}
}

func TestInterruptedBeforeItBegan(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitInterrupted, run(ctx, nil, &stdout, &stderr), "%s", &stderr)
	require.Empty(t, stdout.String())
}
