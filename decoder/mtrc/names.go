package mtrc

import (
	"bytes"
	"fmt"

	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// Limits of the texts that a table of names keeps for reuse. When one is reached, the
// table forgets all texts.
const (
	maxKept      = 16 << 10
	maxKeptBytes = 4 << 20
)

// names is the table of one sort of names. Writers have a small table and define the
// same names again and again, so this one keeps their texts and reuses them.
type names struct {
	byID  [wire.MaxID + 1]wire.Name
	texts map[string]string
	bytes int // sum of the lengths of texts
}

// clear forgets the ids, at the start of a new stream.
func (t *names) clear() { t.byID = [wire.MaxID + 1]wire.Name{} }

// define reads the text at the start of b as the name with an id. Nothing can refer to
// a name whose id is 0. n is how many bytes were read.
func (t *names) define(id byte, b []byte, limit int) (name wire.Name, n int, err error) {
	n = bytes.IndexByte(b, 0)
	if n < 0 && len(b) <= limit {
		return name, 0, errShort
	}
	if n < 0 || n > limit {
		return name, 0, fmt.Errorf("name of more than %d bytes: %w", limit, trace.ErrLimit)
	}
	name = wire.Name{Text: t.text(b[:n]), Known: true}
	if id != 0 {
		t.byID[id] = name
	}
	return name, n + 1, nil
}

// text returns b as a string. It does not allocate if the text is in the table.
func (t *names) text(b []byte) string {
	if text, ok := t.texts[string(b)]; ok {
		return text
	}
	if t.texts == nil || len(t.texts) >= maxKept || t.bytes+len(b) > maxKeptBytes {
		t.texts, t.bytes = make(map[string]string), 0
	}
	text := string(b)
	t.texts[text] = text
	t.bytes += len(b)
	return text
}
