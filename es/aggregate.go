package es

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultTenant is the tenant of an aggregate whose service knows no tenants.
const DefaultTenant = "(0)"

// MaxIDBytes is the length limit of ids, tenants, names and request ids, in bytes of UTF-8.
const MaxIDBytes = 1 << 10

// AggregateType names a kind of aggregate within a bounded context. Wow calls it a
// named aggregate. It is comparable and may be a map key.
type AggregateType struct {
	// Context is the bounded context's name; it is what messages carry.
	Context string
	// Alias stands for Context in Redis keys and stream names. Defaults to Context.
	Alias string
	// Name is the aggregate's name within the context, such as "order".
	Name string
}

// Scope is the context's alias, or its name where there is none (blank counts as none).
func (t AggregateType) Scope() string {
	if strings.TrimSpace(t.Alias) == "" {
		return t.Context
	}
	return t.Alias
}

// String is "<alias>.<name>", the stem of the type's stream names.
func (t AggregateType) String() string { return t.Scope() + "." + t.Name }

// Validate reports what keeps t from being stored: a blank, oversized or invalid part,
// or a brace, which would move a Redis hash tag. The error is an [ErrInvalid].
func (t AggregateType) Validate() error {
	for _, part := range []struct{ what, text string }{{"context", t.Context}, {"context alias", t.Scope()}, {"aggregate name", t.Name}} {
		if strings.TrimSpace(part.text) == "" {
			return Invalid("%s is blank", part.what)
		}
		if strings.ContainsAny(part.text, "{}") {
			return Invalid("%s %q holds a brace", part.what, part.text)
		}
		if err := checkText(part.what, part.text); err != nil {
			return err
		}
	}
	return nil
}

// ID is the id of one aggregate of this type in the default tenant.
func (t AggregateType) ID(id string) AggregateID {
	return AggregateID{Type: t, Tenant: DefaultTenant, ID: id}
}

// AggregateID points at one aggregate. An ID belongs to one tenant within its type:
// no second tenant can create it. It is comparable and may be a map key.
type AggregateID struct {
	Type AggregateType
	// Tenant owns the aggregate; [AggregateType.ID] sets [DefaultTenant]. It may be empty.
	Tenant string
	// ID is any non-empty valid UTF-8 text of at most [MaxIDBytes] bytes.
	ID string
}

// InTenant is the same id in another tenant.
func (a AggregateID) InTenant(tenant string) AggregateID {
	a.Tenant = tenant
	return a
}

// String is "<type>/<id>@<tenant>", for people to read; nothing parses it.
func (a AggregateID) String() string {
	return fmt.Sprintf("%s/%s@%s", a.Type, printable(a.ID), printable(a.Tenant))
}

// Validate reports what keeps a from being stored, as an [ErrInvalid].
func (a AggregateID) Validate() error {
	if err := a.Type.Validate(); err != nil {
		return err
	}
	if a.ID == "" {
		return Invalid("aggregate id is empty")
	}
	if err := checkText("aggregate id", a.ID); err != nil {
		return err
	}
	return checkText("tenant", a.Tenant)
}

func checkText(what, s string) error {
	if len(s) > MaxIDBytes {
		return fmt.Errorf("%w: %w: %s has %d bytes, more than %d", ErrInvalid, ErrTooLarge, what, len(s), MaxIDBytes)
	}
	if !utf8.ValidString(s) {
		return Invalid("%s %q is not valid UTF-8", what, s)
	}
	return nil
}

// printable keeps a log line to one line: text with control characters is quoted.
func printable(s string) string {
	for _, r := range s {
		if r < ' ' || r == utf8.RuneError || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}
