package rediskey

// The two keys of a process that waits for what becomes of commands share a slot.

// ReplyLease is the STRING that says that the process is alive.
func ReplyLease(process string) string { return "headwater:{reply." + process + "}:lease" }

// Replies is the stream of what the process is told.
func Replies(process string) string { return "headwater:{reply." + process + "}:q" }
