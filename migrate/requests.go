package migrate

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// requestsIn are the request ids of a whole stream's commits. They have the checksum that
// the audit found, which decoded each document to its end.
func requestsIn(rec *record, commits []redis.Z) []any {
	if ids, sum := quickRequests(commits); sum == rec.RequestSum {
		return ids
	}
	return decodedRequests(commits)
}

// decodedRequests are the request ids of commits that can be read.
func decodedRequests(commits []redis.Z) []any {
	ids := make([]any, 0, len(commits))
	for i := range commits {
		if c, err := codec.DecodeCommit(bytesOf(member(commits[i]))); err == nil {
			ids = append(ids, c.RequestID)
		}
	}
	return ids
}

func quickRequests(commits []redis.Z) ([]any, string) {
	ids := make([]any, 0, len(commits))
	var sum unordered
	for i := range commits {
		id, ok := quickRequest(member(commits[i]))
		if !ok {
			return nil, ""
		}
		ids = append(ids, id)
		sum.add(id)
	}
	return ids, sum.sum()
}

// quickRequest finds the request id where every writer puts it: before the events, in a
// string without escapes. It does not look further than that.
func quickRequest(text string) (id string, ok bool) {
	const name = `"requestId":"`
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if depth == 1 && strings.HasPrefix(text[i:], name) {
				id, _, ok = strings.Cut(text[i+len(name):], `"`)
				return id, ok && !strings.Contains(id, `\`)
			}
			if i = stringEnd(text, i+1); i < 0 {
				return "", false
			}
		}
	}
	return "", false
}

// stringEnd is where the string ends whose text begins at from; -1 = nowhere.
func stringEnd(text string, from int) int {
	for from < len(text) {
		end := strings.IndexByte(text[from:], '"')
		if end < 0 {
			return -1
		}
		end += from
		escapes := end - 1
		for escapes >= from && text[escapes] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 1 {
			return end
		}
		from = end + 1
	}
	return -1
}
