package wire_test

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// vectors reads a file of testdata; see its README.
func vectors(t testing.TB, name string, into any) {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".json.gz")
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(z).Decode(into))
}

// document is the members that a vector tells of any document.
type document struct {
	ID, ContextName, AggregateName, Name    string
	Header                                  [][2]string
	TenantID, AggregateID, OwnerID, SpaceID string
	RequestID, CommandID                    string
	AggregateVersion                        *int
	IsCreate, IsVoid, AllowCreate           bool
	BodyType, BodyRaw, StateRaw             string
	CreateTime                              int64
	Version                                 int
	Events                                  []eventDocument
	EventID, FirstOperator, Operator        string
	FirstEventTime, EventTime, SnapshotTime int64
	Tags                                    es.Tags
	Deleted                                 bool
}

type eventDocument struct {
	ID, Name, Revision, BodyType, BodyRaw string
	Sequence                              int
	IsLast                                bool
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func (d *document) aggregate() es.AggregateID {
	at := es.AggregateType{Context: d.ContextName, Name: d.AggregateName}
	if d.ContextName == "inventory-service" {
		at.Alias = "inv"
	}
	return es.AggregateID{Type: at, Tenant: d.TenantID, ID: d.AggregateID}
}

func (d *document) header() (h es.Header) {
	for _, f := range d.Header {
		h = append(h, es.HeaderField{Key: f[0], Value: f[1]})
	}
	return h
}

func (d *document) command() es.Command {
	return es.Command{
		ID: d.ID, Aggregate: d.aggregate(), Name: d.Name, Header: d.header(), OwnerID: d.OwnerID, SpaceID: d.SpaceID,
		RequestID: d.RequestID, Expected: d.AggregateVersion, Create: d.IsCreate, AllowCreate: d.AllowCreate, Void: d.IsVoid,
		BodyType: d.BodyType, Body: es.Raw(d.BodyRaw), CreateTime: at(d.CreateTime),
	}
}

func (d *document) commit() es.Commit {
	c := es.Commit{
		ID: d.ID, Aggregate: d.aggregate(), Header: d.header(), OwnerID: d.OwnerID, SpaceID: d.SpaceID,
		CommandID: d.CommandID, RequestID: d.RequestID, Version: d.Version, CreateTime: at(d.CreateTime),
	}
	for _, e := range d.Events {
		c.Events = append(c.Events, es.Event{ID: e.ID, Name: e.Name, Revision: e.Revision, BodyType: e.BodyType, Body: es.Raw(e.BodyRaw)})
	}
	c.Derive()
	return c
}

func (d *document) meta() es.Meta {
	return es.Meta{
		Aggregate: d.aggregate(), OwnerID: d.OwnerID, SpaceID: d.SpaceID, Version: d.Version, EventID: d.EventID,
		FirstOperator: d.FirstOperator, Operator: d.Operator, FirstEventTime: at(d.FirstEventTime), EventTime: at(d.EventTime),
		SnapshotTime: at(d.SnapshotTime), Tags: d.Tags, Deleted: d.Deleted,
	}
}
