package migrate

import (
	"slices"
	"sync"
)

// Code names a kind of problem; it never changes its meaning.
type Code string

// The problems that block until they are mended.
const (
	// SeveralTenants: one id in two tenants of a type, which the canonical layout cannot hold.
	SeveralTenants Code = "several-tenants"
	// SeveralSources: the commits of one aggregate stand under keys of two eras.
	SeveralSources Code = "several-sources"
	// CanonicalPresent: a type has canonical keys beside legacy ones: a migration by other
	// means has begun, or a new service has written already.
	CanonicalPresent Code = "canonical-present"
)

// The problems that block until they are mended or, each by its code, accepted.
const (
	// Gap: the versions of an aggregate do not run from 1 without a gap. An aggregate with
	// this or one of the next three is left out where they are accepted; its old keys stay.
	Gap Code = "gap"
	// ScoreVersion: a commit's score is not the version that it names.
	ScoreVersion Code = "score-version"
	// WrongIdentity: a document does not belong under its key.
	WrongIdentity Code = "wrong-identity"
	// Unreadable: a document of Wow's that cannot be read.
	Unreadable Code = "unreadable"
	// RequestWithoutEvent: a set holds a request id that no commit has: an append was cut
	// short, or a commit is lost. Accepted, the id is forgotten.
	RequestWithoutEvent Code = "request-without-event"
	// EventWithoutRequest: a commit's request id is missing from the sets; it is rebuilt.
	// It blocks in era D only, where it cannot be the mark of an upgrade.
	EventWithoutRequest Code = "event-without-request"
	// IndexWithoutEvents: era D's index holds an aggregate without commits.
	IndexWithoutEvents Code = "index-without-events"
	// OrphanSnapshot: a snapshot of an aggregate without commits. Accepted, it is left out,
	// and removed at the end, as are those of the next two.
	OrphanSnapshot Code = "orphan-snapshot"
	// SnapshotAhead: a snapshot of a version that no commit has.
	SnapshotAhead Code = "snapshot-ahead"
	// PrepareWithoutName: a reservation that holds, and nobody said of which set.
	PrepareWithoutName Code = "prepare-without-name"
	// WrongType: the name of a key of an era, and another Redis type.
	WrongType Code = "wrong-type"
	// Expires: a key of an era that Redis will remove by itself. PERSIST it or wait.
	Expires Code = "expires"
	// NotUTF8: a key of an era with bytes that no writer of Wow's makes.
	NotUTF8 Code = "not-utf8"
	// Backlog: a group has not handled all messages of a topic. Messages are not migrated.
	Backlog Code = "backlog"
	// Gone: a key that was there is not there any more.
	Gone Code = "gone"
)

// The problems that later steps find. Mend what they name, and run the step again.
const (
	// Changed: a source key is not what the manifest says.
	Changed Code = "changed"
	// Unlisted: a key of an era that the manifest does not list: it came after the audit.
	Unlisted Code = "unlisted"
	// TargetNotEmpty: the target holds keys that this migration did not write.
	TargetNotEmpty Code = "target-not-empty"
	// TargetDiffers: a target key is not what its source is. It is left as it is.
	TargetDiffers Code = "target-differs"
	// WritersActive: the old writers could still write.
	WritersActive Code = "writers-active"
	// ReplayFailed: an aggregate could not be replayed from its copy.
	ReplayFailed Code = "replay-failed"
)

// The problems that are only told.
const (
	// Foreign: the name of a key of an era, and content that is not Wow's. It is never touched.
	Foreign Code = "foreign"
	// LookAlike: a key of no era that looks like one. It is never touched.
	LookAlike Code = "look-alike"
	// OtherType: a key of an aggregate type that was not asked for. It is left alone.
	OtherType Code = "other-type"
	// IndexMissing: an aggregate that era D's index does not hold; it is rebuilt.
	IndexMissing Code = "index-missing"
	// Superseded: a snapshot beside a newer layout's of the same aggregate, which is the
	// one to be copied.
	Superseded Code = "superseded"
	// OtherDatabase: another logical database of the server has keys, too.
	OtherDatabase Code = "other-database"
)

var (
	notes      = []Code{Foreign, LookAlike, OtherType, IndexMissing, Superseded, OtherDatabase}
	acceptable = []Code{
		Gap, ScoreVersion, WrongIdentity, Unreadable, RequestWithoutEvent, EventWithoutRequest, IndexWithoutEvents,
		OrphanSnapshot, SnapshotAhead, PrepareWithoutName, WrongType, Expires, NotUTF8, Backlog, Gone,
	}
	// unloadable are those of commits that no store could load.
	unloadable = []Code{Gap, ScoreVersion, WrongIdentity, Unreadable}
)

// Problem is one thing that somebody should look at.
type Problem struct {
	Code Code   `json:"code"`
	Key  string `json:"key,omitempty"`
	// Detail says what contradicts what, for people.
	Detail string `json:"detail,omitempty"`
	// Blocks says that nothing is copied, or removed, because of it.
	Blocks bool `json:"blocks,omitempty"`
}

// MaxProblems is how many problems a report keeps; the manifest and the counts have all.
const MaxProblems = 1000

// Problems is what is wrong.
type Problems struct {
	// Problems are the first [MaxProblems].
	Problems []Problem `json:"problems,omitempty"`
	// ByCode counts all of them, and Blocking those that block.
	ByCode   map[Code]int `json:"by_code,omitempty"`
	Blocking int          `json:"blocking"`
}

func (p *Problems) add(found Problem) {
	if p.ByCode == nil {
		p.ByCode = map[Code]int{}
	}
	p.ByCode[found.Code]++
	if found.Blocks {
		p.Blocking++
	}
	if len(p.Problems) < MaxProblems {
		p.Problems = append(p.Problems, found)
	}
}

// finder makes problems, and knows which of them block.
type finder struct{ accept []Code }

func (f finder) problem(code Code, key, detail string) Problem {
	return Problem{Code: code, Key: key, Detail: detail, Blocks: !slices.Contains(notes, code) && !slices.Contains(f.accept, code)}
}

// told is [finder.problem] of one that blocks elsewhere.
func (f finder) told(code Code, key, detail string) Problem {
	return Problem{Code: code, Key: key, Detail: detail}
}

// Result is what a step after the audit did.
type Result struct {
	// Manifest is the manifest's checksum.
	Manifest string `json:"manifest"`
	// Aggregates, Events, Requests, Snapshots and Prepared count what is confirmed: copied
	// and found there already, verified, or removed.
	Aggregates int64 `json:"aggregates"`
	Events     int64 `json:"events"`
	Requests   int64 `json:"requests"`
	Snapshots  int64 `json:"snapshots"`
	Prepared   int64 `json:"prepared"`
	// Keys counts the keys that this run itself wrote or removed.
	Keys int64 `json:"keys"`
	// Left counts what the manifest lists and the operator chose to leave out.
	Left int64 `json:"left,omitempty"`
	// Finished says that the step looked at everything.
	Finished bool `json:"finished"`
	Problems
}

// Outcome is [Clean], [Blocked] or [Unfinished].
func (r Result) Outcome() Outcome {
	switch {
	case !r.Finished:
		return Unfinished
	case r.Blocking > 0:
		return Blocked
	}
	return Clean
}

// tally is a result that several goroutines add to.
type tally struct {
	mu     sync.Mutex
	result Result
}

func (t *tally) add(f func(*Result)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.result)
}

func (t *tally) report(p *Problem) { t.add(func(r *Result) { r.add(*p) }) }
