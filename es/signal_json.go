package es

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

type functionJSON struct {
	Kind      string `json:"functionKind"`
	Context   string `json:"contextName"`
	Processor string `json:"processorName"`
	Name      string `json:"name"`
}

type fieldJSON struct {
	Name    string `json:"name"`
	Message string `json:"msg"`
}

type aggregateJSON struct {
	Context *string `json:"contextName"`
	Name    *string `json:"aggregateName"`
	ID      *string `json:"aggregateId"`
	Tenant  *string `json:"tenantId"`
}

// signalJSON is Wow's wait signal. Pointers are what a reader requires.
type signalJSON struct {
	ID        *string         `json:"id"`
	WaitID    *string         `json:"waitCommandId"`
	CommandID *string         `json:"commandId"`
	Aggregate *aggregateJSON  `json:"aggregateId"`
	Stage     *Stage          `json:"stage"`
	Function  *functionJSON   `json:"function"`
	Version   *int            `json:"aggregateVersion"`
	Last      bool            `json:"isLastProjection"`
	Code      string          `json:"errorCode"`
	Message   string          `json:"errorMsg"`
	Fields    []fieldJSON     `json:"bindingErrors,omitempty"`
	Result    json.RawMessage `json:"result"`
	Commands  json.RawMessage `json:"commands"`
	Time      *int64          `json:"signalTime"`
	Succeeded bool            `json:"succeeded"`
}

// MarshalJSON writes s as Wow does, but for the order of what is in its result.
func (s Signal) MarshalJSON() ([]byte, error) {
	result, err := resultJSON(s.Result)
	if err != nil {
		return nil, err
	}
	commands := s.Commands
	if commands == nil {
		commands = []string{}
	}
	ids, err := encodeJSON(commands)
	if err != nil {
		return nil, err
	}
	ms, t := s.Time.UnixMilli(), s.Aggregate
	function := functionJSON(s.Function)
	return encodeJSON(signalJSON{
		ID: &s.ID, WaitID: &s.WaitID, CommandID: &s.CommandID, Stage: &s.Stage, Function: &function,
		Aggregate: &aggregateJSON{&t.Type.Context, &t.Type.Name, &t.ID, &t.Tenant}, Version: versionJSON(s.Version), Last: s.Last,
		Code: codeJSON(s.Code), Message: s.Message, Fields: fieldsJSON(s.Fields), Result: result, Commands: ids, Time: &ms, Succeeded: s.Err() == nil,
	})
}

// UnmarshalJSON reads what Wow reads. What it does not read is an [ErrCorrupt].
func (s *Signal) UnmarshalJSON(data []byte) error {
	j := signalJSON{Code: CodeOK}
	if err := json.Unmarshal(data, &j); err != nil {
		return Corrupt("wait signal: %w", err)
	}
	if j.ID == nil || j.WaitID == nil || j.CommandID == nil || j.Stage == nil || j.Function == nil {
		return Corrupt("wait signal lacks a field")
	}
	if a := j.Aggregate; a == nil || a.Context == nil || a.Name == nil || a.ID == nil || a.Tenant == nil {
		return Corrupt("wait signal lacks its aggregate")
	}
	if !j.Stage.Valid() {
		return Corrupt("wait signal of a stage %q", string(*j.Stage))
	}
	read := Signal{
		ID: *j.ID, WaitID: *j.WaitID, CommandID: *j.CommandID, Stage: *j.Stage, Function: Function(*j.Function), Last: j.Last,
		Aggregate: AggregateID{AggregateType{Context: *j.Aggregate.Context, Name: *j.Aggregate.Name}, *j.Aggregate.Tenant, *j.Aggregate.ID},
		Code:      j.Code, Message: j.Message, Fields: fieldsOf(j.Fields), Time: timeOf(j.Time),
	}
	if j.Version != nil {
		read.Version = *j.Version
	}
	if err := decodeJSON("result", j.Result, &read.Result); err != nil {
		return err
	}
	if err := decodeJSON("commands", j.Commands, &read.Commands); err != nil {
		return err
	}
	*s = read
	return nil
}

// commandResultJSON is what HTTP callers of Kotlin nodes see.
type commandResultJSON struct {
	ID            string          `json:"id"`
	WaitID        string          `json:"waitCommandId"`
	Stage         Stage           `json:"stage"`
	Context       string          `json:"contextName"`
	AggregateName string          `json:"aggregateName"`
	Tenant        string          `json:"tenantId"`
	AggregateID   string          `json:"aggregateId"`
	Version       *int            `json:"aggregateVersion"`
	RequestID     string          `json:"requestId"`
	CommandID     string          `json:"commandId"`
	Function      functionJSON    `json:"function"`
	Code          string          `json:"errorCode"`
	Message       string          `json:"errorMsg"`
	Fields        []fieldJSON     `json:"bindingErrors,omitempty"`
	Result        json.RawMessage `json:"result"`
	Time          *int64          `json:"signalTime"`
	Succeeded     bool            `json:"succeeded"`
}

// MarshalJSON writes r as Wow does; Commands and Last are not written.
func (r CommandResult) MarshalJSON() ([]byte, error) {
	result, err := resultJSON(r.Result)
	if err != nil {
		return nil, err
	}
	ms, t := r.Time.UnixMilli(), r.Aggregate
	return encodeJSON(commandResultJSON{
		ID: r.ID, WaitID: r.WaitID, Stage: r.Stage, Context: t.Type.Context, AggregateName: t.Type.Name, Tenant: t.Tenant, AggregateID: t.ID,
		Version: versionJSON(r.Version), RequestID: r.RequestID, CommandID: r.CommandID, Function: functionJSON(r.Function),
		Code: codeJSON(r.Code), Message: r.Message, Fields: fieldsJSON(r.Fields), Result: result, Time: &ms, Succeeded: r.Err() == nil,
	})
}

// UnmarshalJSON reads what a Kotlin node, or [CommandResult.MarshalJSON], has written.
func (r *CommandResult) UnmarshalJSON(data []byte) error {
	j := commandResultJSON{Code: CodeOK}
	if err := json.Unmarshal(data, &j); err != nil {
		return Corrupt("command result: %w", err)
	}
	read := CommandResult{RequestID: j.RequestID, Signal: Signal{
		ID: j.ID, WaitID: j.WaitID, CommandID: j.CommandID, Stage: j.Stage, Function: Function(j.Function),
		Aggregate: AggregateID{AggregateType{Context: j.Context, Name: j.AggregateName}, j.Tenant, j.AggregateID},
		Code:      j.Code, Message: j.Message, Fields: fieldsOf(j.Fields), Time: timeOf(j.Time),
	}}
	if j.Version != nil {
		read.Version = *j.Version
	}
	if err := decodeJSON("result", j.Result, &read.Result); err != nil {
		return err
	}
	*r = read
	return nil
}

// encodeJSON writes what Jackson would: it escapes no more than it must.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func resultJSON(result map[string]any) (json.RawMessage, error) {
	if result == nil {
		return json.RawMessage("{}"), nil
	}
	return encodeJSON(result)
}

// decodeJSON reads a field that may be absent, but not null.
func decodeJSON(name string, data json.RawMessage, v any) error {
	if data == nil || string(data) == "{}" || string(data) == "[]" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil || string(data) == "null" {
		return Corrupt("%s of a signal is %.100s", name, data)
	}
	return nil
}

func versionJSON(version int) *int {
	if version == 0 {
		return nil
	}
	return &version
}

func codeJSON(code string) string {
	if code == "" {
		return CodeOK
	}
	return code
}

func fieldsJSON(fields []FieldError) (written []fieldJSON) {
	for _, f := range fields {
		written = append(written, fieldJSON(f))
	}
	return written
}

func fieldsOf(written []fieldJSON) (fields []FieldError) {
	for _, f := range written {
		fields = append(fields, FieldError(f))
	}
	return fields
}

func timeOf(ms *int64) time.Time {
	if ms == nil {
		return time.Now().UTC().Truncate(time.Millisecond)
	}
	return time.UnixMilli(*ms).UTC()
}
