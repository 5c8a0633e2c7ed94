package testutil

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// MTRCRules are the rules for a compatible writer of mpatrol's tracing files.
type MTRCRules struct {
	// Limit is the bound that all numbers must be below; 0 means no limit.
	Limit uint64
	// Shared allows live blocks to have the same address, like those of different processes.
	Shared bool
}

// Check fails the test if a file breaks the rules. It parses the bytes independently of the
// decoder. Numbers must be as short as possible. IDs of names must be 1 to 32 and defined
// before they are used, names must have 1 to 1023 bytes, indices must be live from A to F, and
// each stream must have its trailer.
func (r MTRCRules) Check(tb testing.TB, file []byte) {
	tb.Helper()
	for rest := file; ; {
		s := mtrcStream{tb: tb, rules: r, file: file, rest: rest}
		s.header()
		for s.record() {
		}
		if rest = s.rest; len(rest) == 0 {
			return
		}
	}
}

// mtrcStream is the stream being checked.
type mtrcStream struct {
	tb         testing.TB
	rules      MTRCRules
	file, rest []byte
	source     bool

	live    map[uint64]uint64 // address by index
	at      map[uint64]bool   // addresses of live blocks
	defined [2][33]bool       // functions, files
}

func (s *mtrcStream) fail(format string, args ...any) {
	s.tb.Helper()
	s.tb.Fatalf("mtrc: offset %d: %s", len(s.file)-len(s.rest), fmt.Sprintf(format, args...))
}

func (s *mtrcStream) take(n int) []byte {
	if len(s.rest) < n {
		s.fail("%d bytes are left, not %d", len(s.rest), n)
	}
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b
}

func (s *mtrcStream) header() {
	s.live, s.at = make(map[uint64]uint64), make(map[uint64]bool)
	if magic := s.take(4); string(magic) != "MTRC" {
		s.fail("magic %q", magic)
	}
	words := map[string]struct {
		bytes int
		order binary.ByteOrder
	}{
		"\x01\x00\x00\x00\x00\x00\x00\x00": {8, binary.LittleEndian},
		"\x00\x00\x00\x00\x00\x00\x00\x01": {8, binary.BigEndian},
		"\x01\x00\x00\x00":                 {4, binary.LittleEndian},
		"\x00\x00\x00\x01":                 {4, binary.BigEndian},
	}
	w, ok := words[string(s.rest[:min(len(s.rest), 8)])]
	if !ok {
		w, ok = words[string(s.rest[:min(len(s.rest), 4)])]
	}
	if !ok {
		s.fail("order word % x", s.rest[:min(len(s.rest), 8)])
	}
	s.take(w.bytes)
	word := s.take(w.bytes)
	var version uint64
	if w.bytes == 8 {
		version = w.order.Uint64(word)
	} else {
		version = uint64(w.order.Uint32(word))
	}
	if version >= 10600 {
		s.fail("version %d", version)
	}
	s.source = version >= 10405
}

// record checks a record, and returns false after the trailer.
func (s *mtrcStream) record() bool {
	kind := s.take(1)[0]
	switch kind {
	case 'M':
		if magic := s.take(3); string(magic) != "TRC" {
			s.fail("trailer M%q", magic)
		}
		return false
	case 'H', 'I':
		s.number()
		s.number()
		return true
	case 'A', 'R', 'F':
	default:
		s.fail("record %q", kind)
	}
	index := s.number()
	old, live := s.live[index]
	if index == 0 || live == (kind == 'A') {
		s.fail("%c of index %d, live %v", kind, index, live)
	}
	delete(s.live, index)
	delete(s.at, old)
	if kind != 'F' {
		address := s.number()
		s.number()
		if s.at[address] && !s.rules.Shared {
			s.fail("%c at %#x, where another block is live", kind, address)
		}
		s.live[index], s.at[address] = address, true
	}
	if s.source {
		s.number()
		s.name(0)
		s.name(1)
		s.number()
	}
	return true
}

func (s *mtrcStream) number() uint64 {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		s.fail("no number")
	}
	if n > 1 && s.rest[n-1] == 0 {
		s.fail("number %d in %d bytes", v, n)
	}
	if s.rules.Limit > 0 && v >= s.rules.Limit {
		s.fail("number %d", v)
	}
	s.take(n)
	return v
}

func (s *mtrcStream) name(sort int) {
	b := s.take(1)[0]
	if b == 0 {
		return
	}
	id := b & 0x7f
	if id == 0 || id > 32 || b < 0x80 && !s.defined[sort][id] {
		s.fail("name %#02x, which is not defined or not allowed", b)
	}
	if b < 0x80 {
		return
	}
	s.defined[sort][id] = true
	text, _, ok := strings.Cut(string(s.rest[:min(len(s.rest), 1024)]), "\x00")
	if !ok || text == "" {
		s.fail("name %.40q", text)
	}
	s.take(len(text) + 1)
}
