package tracer

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind"
)

// tables keeps the unwind tables that the programs use: one per file, whichever
// processes map it. It is not safe for concurrent use.
type tables struct {
	outer *outer        // slot → rows
	inner *ebpf.MapSpec // of a map of rows
	rules []unwind.Rule // shared with the programs; by number
	known map[unwind.Rule]uint32
	files map[tableKey]*table
	made  map[uint32]*ebpf.Map // tables to be installed, by slot
	next  uint32               // first slot that was never used
	rows  int                  // of all tables
	full  int                  // rules that found no place and count as unsupported

	mu   sync.Mutex
	free []uint32 // slots that were used before
}

// tableKey tells files apart. The file may have been replaced under the same
// inode number, so it takes more than that.
type tableKey struct {
	id      fileID
	buildID string
	size    int64
	changed int64 // time of the last change, ns
}

// table is what the kernel has of one file.
type table struct {
	key      tableKey
	slot     uint32
	rows     uint32 // 0 if the file has no tables: then there is no slot
	base     uint64 // address, as linked, that rows count from
	segments []symbol.Segment
	users    int // mappings
}

// maxAllRows bounds the memory of all tables, at 8 bytes a row: the process
// decides what it maps, and it may be hostile.
const maxAllRows = 1 << 25

// Numbers of rules that are always there.
const (
	ruleNone = iota
	ruleUnsupported
)

// newTables takes over the empty maps of the programs; inner describes the maps
// in outer.
func newTables(o *outer, rules *ebpf.Map, inner *ebpf.MapSpec) (*tables, error) {
	memory, err := unix.Mmap(rules.FD(), 0, int(rules.MaxEntries()*rules.ValueSize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map unwind rules: %w", err)
	}
	t := &tables{
		outer: o, inner: inner.Copy(), made: map[uint32]*ebpf.Map{},
		rules: unsafe.Slice((*unwind.Rule)(unsafe.Pointer(unsafe.SliceData(memory))), rules.MaxEntries()),
		known: map[unwind.Rule]uint32{}, files: map[tableKey]*table{},
	}
	t.number(unwind.RuleNone)
	t.number(unwind.RuleUnsupported)
	return t, nil
}

// number returns the number of a rule in the kernel.
func (t *tables) number(r unwind.Rule) uint32 {
	if n, ok := t.known[r]; ok {
		return n
	}
	n := len(t.known)
	if n >= len(t.rules) {
		t.full++
		return ruleUnsupported
	}
	t.rules[n] = r
	t.known[r] = uint32(n)
	return uint32(n)
}

// keyOf returns the key of an open file that m maps.
func keyOf(m mapping, f *symbol.File) tableKey {
	key := tableKey{id: fileID{major: m.major, minor: m.minor, inode: m.inode}, buildID: f.BuildID()}
	key.size, key.changed = f.Stamp()
	return key
}

// find returns the table of a file that is in use, with one more user.
func (t *tables) find(key tableKey) *table {
	x := t.files[key]
	if x != nil {
		x.users++
	}
	return x
}

// add makes the table of a file, with one user; install brings it into the
// kernel. built is nil for a file without tables.
func (t *tables) add(key tableKey, built *unwind.Table, segments []symbol.Segment) (*table, error) {
	x := &table{key: key, segments: segments, users: 1}
	t.files[key] = x
	if built == nil || len(built.Rows) == 0 {
		return x, nil
	}
	if len(built.Rows) > maxAllRows-t.rows {
		return x, fmt.Errorf("keep unwind table of %d rows: the others have %d already", len(built.Rows), t.rows)
	}
	slot, ok := t.slot()
	if !ok {
		return x, fmt.Errorf("keep unwind table: %d files have one already", t.next)
	}
	spec := t.inner.Copy()
	spec.Name, spec.MaxEntries = "table", uint32(len(built.Rows))
	m, err := ebpf.NewMap(spec)
	if err == nil {
		if err = t.fill(m, built); err != nil {
			err = errors.Join(err, m.Close())
		}
	}
	if err != nil {
		t.giveBack(slot)
		return x, fmt.Errorf("make unwind table of %d rows: %w", len(built.Rows), shortage(err))
	}
	t.made[slot] = m
	t.rows += len(built.Rows)
	x.slot, x.rows, x.base = slot, uint32(len(built.Rows)), built.Base
	return x, nil
}

// install brings all tables that were made into the kernel.
func (t *tables) install() error {
	made := t.made
	t.made = map[uint32]*ebpf.Map{}
	if err := t.outer.install(made); err != nil {
		return fmt.Errorf("install unwind tables: %w", err)
	}
	return nil
}

// fill writes the rows through a mapping of the map, since a system call for
// each or even for many costs more than parsing them did.
func (t *tables) fill(m *ebpf.Map, built *unwind.Table) error {
	numbers := make([]uint32, len(built.Rules))
	for i, r := range built.Rules {
		numbers[i] = t.number(r)
	}
	memory, err := unix.Mmap(m.FD(), 0, len(built.Rows)*int(unsafe.Sizeof(probeRow{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	rows := unsafe.Slice((*probeRow)(unsafe.Pointer(unsafe.SliceData(memory))), len(built.Rows))
	for i, r := range built.Rows {
		rows[i].Pc, rows[i].Rule = r.PC, numbers[r.Rule]
	}
	return unix.Munmap(memory)
}

func (t *tables) slot() (uint32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		return slot, true
	}
	if t.next >= t.outer.MaxEntries() {
		return 0, false
	}
	t.next++
	return t.next - 1, true
}

func (t *tables) giveBack(slot uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, slot)
}

// release takes a user off. Without users a table leaves the kernel.
func (t *tables) release(x *table) {
	x.users--
	if x.users > 0 {
		return
	}
	delete(t.files, x.key)
	t.rows -= int(x.rows)
	if x.rows > 0 {
		t.outer.remove(x.slot, t.giveBack)
	}
}

// Close gives the memory of the rules back; the maps belong to the programs.
func (t *tables) Close() error {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.rules))), len(t.rules)*int(unsafe.Sizeof(t.rules[0])))
	t.rules = nil
	return errors.Join(t.outer.Close(), unix.Munmap(bytes))
}
