package proc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// space is the memory of a made process, from address 0.
type space struct {
	word int
	b    []byte
}

func (s *space) put(addr uint64, words ...uint64) {
	for _, w := range words {
		if s.word == 4 {
			binary.LittleEndian.PutUint32(s.b[addr:], uint32(w))
		} else {
			binary.LittleEndian.PutUint64(s.b[addr:], w)
		}
		addr += uint64(s.word)
	}
}

// Addresses in a made process: the program's dynamic segment, the loader's record, and the
// entries of its list.
const (
	madeDynamic = 0x100
	madeDebug   = 0x200
	madeLink    = 0x300
	madeStep    = 0x40
)

// made makes a process with a list of n libraries.
func made(word, n int) *space {
	s := &space{word, make([]byte, 0x1000)}
	s.put(madeDynamic, uint64(elf.DT_NEEDED), 1, uint64(elf.DT_DEBUG), madeDebug, uint64(elf.DT_NULL), 0)
	s.put(madeDebug, 1, madeLink)
	for i := range uint64(n) {
		next := madeLink + (i+1)*madeStep
		if i+1 == uint64(n) {
			next = 0
		}
		s.put(madeLink+i*madeStep, 0x10000*i, 0x77, 0x10000*i+0x88, next)
	}
	return s
}

func (s *space) links() ([]Link, error) {
	return Links(bytes.NewReader(s.b), s.word, madeDynamic, 0x60)
}

func TestLinks(t *testing.T) {
	for _, word := range []int{4, 8} {
		got, err := made(word, 3).links()
		want := []Link{{0, 0x88}, {0x10000, 0x10088}, {0x20000, 0x20088}}
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("words of %d bytes: %v, %v", word, got, err)
		}
	}
}

// The memory of a process may contain anything.
func TestLinksOfLiars(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *space)
		links  int // number of links that are still returned
	}{
		"no loader yet":    {func(s *space) { s.put(madeDynamic+3*8, 0) }, 0},
		"no DT_DEBUG":      {func(s *space) { s.put(madeDynamic, uint64(elf.DT_NULL)) }, 0},
		"no version":       {func(s *space) { s.put(madeDebug, 0) }, 0},
		"loop":             {func(s *space) { s.put(madeLink+2*madeStep+3*8, madeLink+madeStep) }, 3},
		"own next":         {func(s *space) { s.put(madeLink+3*8, madeLink) }, 1},
		"nowhere":          {func(s *space) { s.put(madeLink+3*8, 1<<63+8) }, 1},
		"outside":          {func(s *space) { s.put(madeDebug+8, 0xffff) }, 0},
		"across the end":   {func(s *space) { s.put(madeLink+3*8, 0xff8) }, 1},
		"list of nothing":  {func(s *space) { s.put(madeDebug+8, 0) }, 0},
		"record elsewhere": {func(s *space) { s.put(madeDynamic+3*8, 1<<63) }, 0},
	} {
		s := made(8, 3)
		test.change(s)
		links, err := s.links()
		if len(links) != test.links || err == nil && name != "list of nothing" {
			t.Errorf("%s: %v, %v; want %d links and an error", name, links, err, test.links)
		}
	}
}

// A list without an end that never repeats an address ends as well.
func TestLinksWithoutEnd(t *testing.T) {
	s := &space{8, make([]byte, madeLink+(maxLinks+10)*madeStep)}
	copy(s.b, made(8, 1).b)
	for i := range uint64(maxLinks + 5) {
		s.put(madeLink+i*madeStep, 0, 0, 0, madeLink+(i+1)*madeStep)
	}
	if links, err := s.links(); len(links) != maxLinks || !errors.Is(err, ErrSyntax) {
		t.Errorf("%d links, %v", len(links), err)
	}
}

func FuzzLinks(f *testing.F) {
	f.Add(made(8, 3).b, true)
	f.Add(made(4, 2).b, false)
	f.Fuzz(func(t *testing.T, memory []byte, wide bool) {
		s := &space{4, memory}
		if wide {
			s.word = 8
		}
		links, err := s.links()
		if len(links) > maxLinks || len(links) > len(memory) {
			t.Errorf("%d links in %d bytes", len(links), len(memory))
		}
		if err == nil && len(memory) < madeDynamic {
			t.Error("no error without memory")
		}
	})
}
