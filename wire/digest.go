package wire

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/headwater-go/headwater/es"
)

// digest stands for a command's name and body, as the bytes that were sent: reading a
// command needs no second writing. 16 bytes are enough to tell two commands apart.
func digest(name string, body []byte) string {
	var room [512]byte
	b := append(append(append(room[:0], name...), 0), body...)
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// CommandDigest is the [es.Command].Digest that a reader of c finds, for commands that
// are handled where they are made. c has a name or a body that gives it one.
func (j *JSONCodec) CommandDigest(c *es.Command) (string, error) {
	name, _, err := j.tables.commandNames(c)
	if err != nil {
		return "", err
	}
	w := newWriter()
	w.body("", c.Body)
	body, err := w.done("command")
	if err != nil {
		return "", err
	}
	return digest(name, body), nil
}
