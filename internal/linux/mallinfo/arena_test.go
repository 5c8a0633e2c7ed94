package mallinfo

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"rtrace-bpf/trace"
)

// space is a made memory that starts at address 0x1000. changed is called before each reading.
type space struct {
	b       []byte
	changed func()
}

func (s *space) ReadAt(p []byte, at int64) (int, error) {
	if s.changed != nil {
		s.changed()
	}
	if at < 0x1000 || at+int64(len(p)) > int64(len(s.b)) {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, s.b[at:]), nil
}

func (s *space) put(at uint64, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(s.b[at+8*uint64(i):], w)
	}
}

// Addresses in a made heap.
const (
	arenaAt, otherAt, parametersAt = 0x1000, 0x2000, 0x3000
	topAt, firstAt, secondAt       = 0x8000, 0x9000, 0x9100
	fastAt, fastNextAt             = 0xa000, 0xa040
)

// madeHeap makes two arenas. The first one has two blocks in a fast bin, linked in either way,
// and two in a bin.
func madeHeap(mixed bool) (*space, reader) {
	l := layouts[sizes{2200, 136}]
	s := &space{b: make([]byte, 0x10000)}
	for _, arena := range []uint64{arenaAt, otherAt} {
		for field := l.bins; field < l.binsEnd; field += 16 {
			head := arena + field - 16
			s.put(arena+field, head, head)
		}
		s.put(arena+l.top, topAt)
		s.put(arena+l.systemMem, 0x21000)
	}
	s.put(arenaAt+l.next, otherAt)
	s.put(otherAt+l.next, arenaAt)
	s.put(topAt, 0, 0x5000|1)
	link := func(at, to uint64) uint64 {
		if mixed {
			return (at+16)>>12 ^ to
		}
		return to
	}
	s.put(arenaAt+l.fastBins+8, fastAt)
	s.put(fastAt, 0, 0x30|1, link(fastAt, fastNextAt))
	s.put(fastNextAt, 0, 0x30|1, link(fastNextAt, 0))
	head := arenaAt + l.bins + 5*16 - 16
	s.put(head+16, firstAt, secondAt)
	s.put(firstAt, 0, 0x100|1, secondAt, head)
	s.put(secondAt, 0, 0x200|1, head, firstAt)
	binary.LittleEndian.PutUint32(s.b[parametersAt+l.mmaps:], 7)
	s.put(parametersAt+l.mmappedMem, 0x70000)
	return s, reader{memory: s, layout: l, arena: arenaAt, parameters: parametersAt, deadline: time.Now().Add(time.Hour)}
}

func TestRead(t *testing.T) {
	want := trace.HeapInfo{
		Arena: 2 * 0x21000, OrdBlks: 4, SmBlks: 2, HBlks: 7, HBlkHd: 0x70000, FsmBlks: 0x60,
		FordBlks: 2*0x5000 + 0x60 + 0x300, KeepCost: 0x5000,
	}
	want.UordBlks = want.Arena - want.FordBlks
	for _, mixed := range []bool{false, true} {
		_, r := madeHeap(mixed)
		got, err := r.read()
		if err != nil || got != want {
			t.Errorf("mixed %v: %+v, %v, want %+v", mixed, got, err, want)
		}
	}
}

// A process that changes its heap or is hostile cannot occupy the reader for long, and no
// number is made up.
func TestReadOfChanging(t *testing.T) {
	outer := trace.HeapInfo{Arena: 2 * 0x21000, HBlks: 7, HBlkHd: 0x70000, KeepCost: 0x5000}
	for name, test := range map[string]struct {
		change func(s *space, r *reader)
		want   error
		info   trace.HeapInfo
	}{
		"lists without end": {func(s *space, r *reader) {
			s.put(firstAt+24, firstAt)
			r.deadline = time.Now()
		}, errLate, outer},
		"a link to nowhere":      {func(s *space, _ *reader) { s.put(firstAt+24, 1<<40) }, io.ErrUnexpectedEOF, outer},
		"a link beyond all":      {func(s *space, _ *reader) { s.put(firstAt+24, 1<<63) }, errBroken, outer},
		"a fast link to nowhere": {func(s *space, _ *reader) { s.put(fastAt+16, 12345) }, errBroken, outer},
		"arenas without end":     {func(s *space, r *reader) { s.put(otherAt+r.layout.next, otherAt) }, errBroken, trace.HeapInfo{}},
		"memory that changes": {func(s *space, r *reader) {
			n := uint64(0)
			s.changed = func() { n++; s.put(otherAt+r.layout.systemMem+8, n); s.put(arenaAt+r.layout.top+8, n) }
		}, errChanged, outer},
	} {
		s, r := madeHeap(true)
		test.change(s, &r)
		got, err := r.read()
		if !errors.Is(err, test.want) || got != test.info {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, test.want)
		}
	}
}

// The header of a block shows that it has a mapping of its own.
func TestMapped(t *testing.T) {
	s, r := madeHeap(true)
	s.put(firstAt, 0x10, 0x1ff0|flagMapped)
	if size, ok := r.mapped(firstAt + 16); !ok || size != 0x2000 {
		t.Errorf("%#x, %v", size, ok)
	}
	if _, ok := r.mapped(secondAt + 16); ok {
		t.Error("a block of an arena counts as mapped")
	}
}

// A layout from a hostile file is refused.
func TestSaneLayouts(t *testing.T) {
	for size, l := range layouts {
		if arena, parameters := l.sizes(); !l.sane() || arena > size.arena || parameters > size.parameters {
			t.Errorf("%+v is not sane", l)
		}
		l.top = 1 << 40
		if l.sane() {
			t.Error("a field far away is sane")
		}
	}
}
