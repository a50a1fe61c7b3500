package es

// Names of the headers that Headwater and Wow give a meaning to.
const (
	HeaderTraceID      = "trace_id"
	HeaderUpstreamID   = "upstream_id"
	HeaderUpstreamName = "upstream_name"
	HeaderOperator     = "command_operator"
	HeaderUserAgent    = "user_agent"
	HeaderRemoteIP     = "remote_ip"
	// HeaderTraceParent and HeaderTraceState are W3C's trace context. As in Wow, a commit
	// does not take them over from its command: who publishes it sets them.
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
	// HeaderLocalFirst is "true" where a Kotlin process took the message itself as well.
	HeaderLocalFirst = "local_first"
	// HeaderCommandDigest is the [Command].Digest of the command that a commit came from.
	// Wow does not know it.
	HeaderCommandDigest = "command_digest"
)

// Header is the ordered metadata of a message; the order is the order on the wire.
// Setting a known key keeps its place. The zero value is empty and ready to use.
// A Header is not safe for concurrent writing.
type Header []HeaderField

// HeaderField is one entry of a [Header].
type HeaderField struct{ Key, Value string }

// Get is the value of key, or "" where it is absent.
func (h Header) Get(key string) string {
	v, _ := h.Lookup(key)
	return v
}

// Lookup tells a value apart from an absent key.
func (h Header) Lookup(key string) (string, bool) {
	for i := range h {
		if h[i].Key == key {
			return h[i].Value, true
		}
	}
	return "", false
}

// Set puts value under key: in its place where the key is known, else at the end.
func (h *Header) Set(key, value string) {
	for i := range *h {
		if (*h)[i].Key == key {
			(*h)[i].Value = value
			return
		}
	}
	*h = append(*h, HeaderField{key, value})
}
