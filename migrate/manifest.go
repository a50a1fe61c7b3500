package migrate

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// manifestWriter appends lines; it is safe for concurrent use.
type manifestWriter struct {
	mu  sync.Mutex
	out *bufio.Writer
	sum hash.Hash
}

func (w *manifestWriter) write(lines ...line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		text = append(text, '\n')
		w.sum.Write(text)
		if _, err := w.out.Write(text); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

// close writes the end.
func (w *manifestWriter) close(r Report) (checksum string, err error) {
	checksum = hex.EncodeToString(w.sum.Sum(nil))
	r.Manifest = checksum
	return checksum, w.write(line{End: &end{checksum, r}})
}

// errComplete: the file holds a manifest that has its end.
var errComplete = errors.New("the file holds a complete manifest")

// begin makes a writer on f: on an empty file with the head given, else after the lines
// of an audit of the same head that was cut short. Those are given to old.
func begin(f File, h head, old func(*record)) (*manifestWriter, error) {
	w := &manifestWriter{out: bufio.NewWriter(f), sum: sha256.New()}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in, keep := bufio.NewReader(f), int64(0)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var l line
		if err != nil || json.Unmarshal(text, &l) != nil {
			break // the file's end, or a line that was not written to its end
		}
		if l.End != nil {
			return nil, es.Invalid("%w; give an empty one", errComplete)
		}
		if keep > 0 && l.Record == nil {
			break // what comes of the whole is found again
		}
		if keep == 0 {
			if err := h.fits(l.Head); err != nil {
				return nil, err
			}
		} else {
			old(l.Record)
		}
		w.sum.Write(text)
		keep += int64(len(text))
	}
	if keep == 0 {
		if err := beginAnew(f, h); err != nil {
			return nil, err
		}
		return w, w.write(line{Head: &h})
	}
	if err := f.Truncate(keep); err != nil {
		return nil, err
	}
	_, err := f.Seek(keep, io.SeekStart)
	return w, err
}

// beginAnew empties a file that holds nothing, or a part of the head.
func beginAnew(f File, h head) error {
	text, err := json.Marshal(line{Head: &h})
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	stands := make([]byte, len(text))
	n, err := io.ReadFull(f, stands)
	if err == nil || !bytes.HasPrefix(text, stands[:n]) {
		return es.Invalid("the file holds something that is no manifest")
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// fits reports why an audit cannot go on with the lines below another head.
func (h *head) fits(other *head) error {
	if other == nil {
		return es.Invalid("the file does not begin as a manifest")
	}
	mine, err := json.Marshal(h)
	if err != nil {
		return err
	}
	theirs, err := json.Marshal(other)
	if err == nil && !bytes.Equal(mine, theirs) {
		err = es.Invalid("the file holds an audit of another place, or with other knobs: %s", theirs)
	}
	return err
}

// manifest is one that is complete.
type manifest struct {
	in   io.ReadSeeker
	head head
	end  end
}

// openManifest reads a manifest to its end and compares its checksum. One that is
// incomplete or was changed is an [es.ErrInvalid].
func openManifest(in io.ReadSeeker) (*manifest, error) {
	m, sum := &manifest{in: in}, sha256.New()
	for l, err := range m.lines(sum) {
		if err != nil {
			return nil, err
		}
		if l.Head != nil {
			m.head = *l.Head
		}
		if l.End != nil {
			m.end = *l.End
		}
	}
	switch {
	case m.head.Format != manifestFormat:
		return nil, es.Invalid("manifest of format %d, not %d", m.head.Format, manifestFormat)
	case m.end.Checksum == "":
		return nil, es.Invalid("the manifest has no end: run the audit again, it goes on from where it was cut")
	case m.end.Checksum != hex.EncodeToString(sum.Sum(nil)):
		return nil, es.Invalid("the manifest was changed: its checksum is another one")
	}
	m.end.Report.Manifest = m.end.Checksum
	return m, nil
}

// lines yields all lines; those before the end go to sum, where it is given.
func (m *manifest) lines(sum io.Writer) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		if _, err := m.in.Seek(0, io.SeekStart); err != nil {
			yield(line{}, err)
			return
		}
		in := bufio.NewReaderSize(m.in, 64<<10)
		for n := 1; ; n++ {
			text, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) && len(text) == 0 {
				return
			}
			var l line
			if err == nil {
				err = json.Unmarshal(text, &l)
			}
			if err != nil {
				yield(l, es.Invalid("manifest line %d: %w", n, err))
				return
			}
			if l.End == nil && sum != nil {
				_, _ = sum.Write(text) // a hash takes everything
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}

// records yields the keys that the manifest lists, without those that are not touched.
func (m *manifest) records() iter.Seq2[*record, error] {
	return func(yield func(*record, error) bool) {
		for l, err := range m.lines(nil) {
			if err != nil {
				yield(nil, err)
				return
			}
			for rec := l.Record; rec != nil && rec.Kind != ""; rec = rec.Beside {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// ReadReport is the report at the end of a manifest, which must be whole.
func ReadReport(manifest io.ReadSeeker) (Report, error) {
	m, err := openManifest(manifest)
	if err != nil {
		return Report{}, fmt.Errorf("read manifest: %w", err)
	}
	return m.end.Report, nil
}
