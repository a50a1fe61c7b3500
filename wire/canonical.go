package wire

import (
	"strings"

	"github.com/headwater-go/headwater/es"
)

// maxKeys is how many header keys are compared with each other; more are for the reader.
const maxKeys = 16

// canonical reads a commit of the very form that this package and Wow write: all
// members, in order, without white space, escapes, or anything that is not ASCII. Most
// stored commits have it, and reading them so takes half the time of a [reader]. It
// reports false for every other document, and for one with any fault: a reader then
// reads it, or says what is wrong.
func (t tables) canonical(data []byte, c *es.Commit) bool {
	if len(data) > maxShared || !isSimple(data) {
		return false
	}
	k := cursor{rest: view(data)}
	c.ID = k.text(`{"id":"`)
	context, name := k.text(`,"contextName":"`), k.text(`,"aggregateName":"`)
	c.Header = k.header()
	c.Aggregate.ID, c.Aggregate.Tenant = k.text(`,"aggregateId":"`), k.text(`,"tenantId":"`)
	c.OwnerID, c.SpaceID = k.text(`,"ownerId":"`), k.text(`,"spaceId":"`)
	c.CommandID, c.RequestID = k.text(`,"commandId":"`), k.text(`,"requestId":"`)
	c.Version = int(k.integer(`,"version":`, 9))
	k.lead(`,"body":[`)
	if k.failed || blank(context) || blank(name) {
		return false
	}
	var a *aggregate
	a, c.Aggregate.Type = t.typeOf(context, name)
	c.Events = make([]es.Event, 0, 1)
	for more := true; more; more = k.next() {
		c.Events = append(c.Events, es.Event{})
		if !k.event(a, &c.Events[len(c.Events)-1]) {
			return false
		}
	}
	c.CreateTime = fromMillis(k.integer(`],"createTime":`, 15))
	if k.failed || k.rest != "}" {
		return false
	}
	c.Derive()
	return true
}

// cursor moves over a document of known form. Once it has failed it finds nothing more.
type cursor struct {
	rest   string
	failed bool
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (k *cursor) fail() { k.rest, k.failed = "", true }

// lead moves past text that must come next.
func (k *cursor) lead(text string) {
	if !strings.HasPrefix(k.rest, text) {
		k.fail()
		return
	}
	k.rest = k.rest[len(text):]
}

// text is what stands between lead and the next quote, which it moves past.
func (k *cursor) text(lead string) string {
	if k.lead(lead); k.failed {
		return ""
	}
	n := strings.IndexByte(k.rest, '"')
	if n < 0 {
		k.fail()
		return ""
	}
	s := k.rest[:n]
	k.rest = k.rest[n+1:]
	return s
}

// integer is the number after lead, of so many digits at most and not negative.
func (k *cursor) integer(lead string, most int) (n int64) {
	k.lead(lead)
	i := 0
	for ; i < len(k.rest) && i <= most && k.rest[i]-'0' <= 9; i++ {
		n = n*10 + int64(k.rest[i]-'0')
	}
	if i == 0 || i > most || i > 1 && k.rest[0] == '0' {
		k.fail()
		return 0
	}
	k.rest = k.rest[i:]
	return n
}

// header reads some fields, each of another key.
func (k *cursor) header() es.Header {
	if k.lead(`,"header":{`); strings.HasPrefix(k.rest, "}") {
		k.rest = k.rest[1:]
		return nil
	}
	end := strings.IndexByte(k.rest, '}') // of the header, or within it: a guess
	h := make(es.Header, 0, 1+strings.Count(k.rest[:max(end, 0)], `,"`))
	for lead := `"`; ; lead = `,"` {
		f := es.HeaderField{Key: k.text(lead), Value: k.text(`:"`)}
		if _, again := h.Lookup(f.Key); again || k.failed || len(h) == maxKeys {
			k.fail()
			return nil
		}
		h = append(h, f)
		if strings.HasPrefix(k.rest, "}") {
			k.rest = k.rest[1:]
			return h
		}
	}
}

// next moves past a comma between two events.
func (k *cursor) next() bool {
	if !strings.HasPrefix(k.rest, ",") {
		return false
	}
	k.rest = k.rest[1:]
	return true
}

// event reads an event whose type is known and current.
func (k *cursor) event(a *aggregate, e *es.Event) bool {
	e.ID, e.Name, e.Revision = k.text(`{"id":"`), k.text(`,"name":"`), k.text(`,"revision":"`)
	e.BodyType = k.text(`,"bodyType":"`)
	k.lead(`,"body":`)
	if k.failed || k.rest == "" || k.rest[0] != '{' || blank(e.Name) || blank(e.Revision) {
		return false
	}
	known := a.eventNamed(e.Name, e.Revision)
	n, deep := extent(k.rest)
	if known == nil || deep || a.upcaster(e.Name, e.Revision) != nil {
		return false
	}
	body := k.rest[:n]
	k.rest = k.rest[n:]
	k.lead("}")
	return !k.failed && a.decodeEvent(e, known, stored{b: bytesOf(body), unchecked: true}) == nil
}
