package es_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// goldenSignals is signals.json, written by Wow v8.10.10.
type goldenSignals struct {
	Signals struct {
		WaitSignalsWritten, CommandResults []struct{ What, JSON string }
		WaitSignalsRead                    []struct {
			What, Doc, Rewritten string
			Accepted             bool
		}
	}
	Headers []struct {
		What            string
		Header, Command [][2]string
	}
}

func readSignals(t *testing.T) (g goldenSignals) {
	t.Helper()
	data, err := os.ReadFile("testdata/signals.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

func TestWowsSignalsAreReadAndWrittenByteForByte(t *testing.T) {
	t.Parallel()
	g := readSignals(t)
	require.Len(t, g.Signals.WaitSignalsWritten, 17)
	for _, v := range g.Signals.WaitSignalsWritten {
		var s es.Signal
		require.NoError(t, s.UnmarshalJSON([]byte(v.JSON)), v.What)
		data, err := s.MarshalJSON()
		require.NoError(t, err)
		if v.What == "result and commands" { // the order within a result is not kept
			require.JSONEq(t, v.JSON, string(data))
			continue
		}
		require.Equal(t, v.JSON, string(data), v.What)
	}
	require.Len(t, g.Signals.CommandResults, 3)
	for _, v := range g.Signals.CommandResults {
		var r es.CommandResult
		require.NoError(t, json.Unmarshal([]byte(v.JSON), &r), v.What)
		require.Equal(t, "req-1", r.RequestID)
		data, err := r.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, v.JSON, string(data), v.What)
	}
}

func TestWhatWowRefusesOfASignalIsRefused(t *testing.T) {
	t.Parallel()
	g := readSignals(t)
	require.Len(t, g.Signals.WaitSignalsRead, 21)
	for _, v := range g.Signals.WaitSignalsRead {
		var s es.Signal
		err := json.Unmarshal([]byte(v.Doc), &s)
		if !v.Accepted {
			require.ErrorIs(t, err, es.ErrCorrupt, v.What)
			continue
		}
		require.NoError(t, err, v.What)
		if v.What == "without signalTime" {
			require.WithinDuration(t, time.Now(), s.Time, time.Minute)
			continue
		}
		data, err := s.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, v.Rewritten, string(data), v.What)
	}
	var s es.Signal
	require.ErrorIs(t, s.UnmarshalJSON([]byte("[")), es.ErrCorrupt)
	var r es.CommandResult
	require.ErrorIs(t, r.UnmarshalJSON([]byte("[")), es.ErrCorrupt)
}

func TestAResultThatIsNoJSONIsInvalid(t *testing.T) {
	t.Parallel()
	s := es.Signal{Result: map[string]any{"f": func() {}}}
	_, err := s.MarshalJSON()
	require.ErrorIs(t, err, es.ErrInvalid)
	_, err = es.CommandResult{Signal: s}.MarshalJSON()
	require.ErrorIs(t, err, es.ErrInvalid)
}

// carried is what CodeOf and a CodeError make of an error on its way to another process.
func carried(err error) error {
	var s, read es.Signal
	s.Stage = es.StageProcessed
	s.Fail(err)
	data, _ := s.MarshalJSON()
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	return read.Err()
}

type heatError struct{}

func (heatError) Error() string     { return "too hot" }
func (heatError) ErrorCode() string { return "TooHot" }

func TestErrorsAreWhatTheyWereInAnotherProcess(t *testing.T) {
	t.Parallel()
	require.NoError(t, carried(nil))
	for _, kind := range []error{
		es.ErrExpectedVersion, es.ErrDuplicateAggregate, es.ErrDuplicateRequest, es.ErrNotFound, es.ErrWrongOwner, es.ErrWrongSpace,
		es.ErrDeleted, es.ErrInvalid,
	} {
		err := carried(es.Refuse(&es.Error{Op: "handle", Err: kind}))
		require.ErrorIs(t, err, kind)
		require.ErrorIs(t, err, es.ErrRefused, kind.Error())
		require.EqualError(t, err, "handle: "+kind.Error())
		require.ErrorIs(t, carried(err), kind, "and in the next one")
	}
	for _, fault := range []error{fmt.Errorf("%w: boom", es.ErrPanic), es.ErrVersionConflict, es.ErrCorrupt, es.ErrUnavailable, errors.New("x")} {
		require.NotErrorIs(t, carried(fault), es.ErrRefused)
	}
	require.ErrorIs(t, carried(es.ErrVersionConflict), es.ErrVersionConflict)
	require.ErrorIs(t, carried(es.Refuse(errors.New("no"))), es.ErrRefused)
	require.ErrorIs(t, carried(es.Refuse(es.ErrNotDeleted)), es.ErrRefused)

	var code *es.CodeError
	require.ErrorAs(t, carried(es.Refuse(fmt.Errorf("today: %w", heatError{}))), &code)
	require.Equal(t, es.CodeError{Code: "TooHot", Message: "today: too hot"}, *code)
	require.ErrorIs(t, code, es.ErrRefused)
	require.EqualError(t, &es.CodeError{Code: "X"}, "X")

	fields := es.FieldErrors{{Name: "sku", Message: "is blank"}, {Name: "qty", Message: "is 0"}}
	err := carried(es.Refuse(fields))
	require.EqualError(t, err, "sku: is blank; qty: is 0")
	require.Equal(t, []es.FieldError(fields), es.FieldsOf(err))
	require.ErrorIs(t, err, es.ErrInvalid)
	require.Equal(t, es.CodeValidation, es.CodeOf(err))
}

type checked struct{ err error }

func (c checked) Validate() error { return c.err }

func TestABodyMayValidateItself(t *testing.T) {
	t.Parallel()
	require.NoError(t, es.ValidateBody(context.Canceled))
	require.NoError(t, es.ValidateBody(checked{}))
	err := es.ValidateBody(checked{errors.New("no sku")})
	require.ErrorIs(t, err, es.ErrInvalid)
	require.Equal(t, es.CodeIllegalArgument, es.CodeOf(err))
	require.Equal(t, es.CodeValidation, es.CodeOf(es.ValidateBody(checked{es.FieldErrors{{Name: "a", Message: "b"}}})))
	require.Equal(t, "TooHot", es.CodeOf(es.ValidateBody(checked{heatError{}})))
}
