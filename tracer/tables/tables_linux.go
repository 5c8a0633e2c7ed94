package tables

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/mapofmaps"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Tables keeps the unwind tables that the programs use: one for each file, shared by all
// processes that map it. It is not safe for concurrent use.
type Tables struct {
	outer *mapofmaps.Map // slot → rows
	inner *ebpf.MapSpec  // describes a map of rows
	rules []unwind.Rule  // by number; memory shared with the programs
	Known map[unwind.Rule]uint32
	Files map[TableKey]*Table
	made  map[uint32]*ebpf.Map // tables that install will install, by slot
	next  uint32               // first slot that was never used
	rows  int                  // number of rows in all tables
	full  int                  // rules for which there was no room; they count as unsupported

	mu   sync.Mutex
	free []uint32 // slots that can be used again
}

// TableKey identifies the contents of a file. An inode number does not suffice: the file
// may have been replaced or changed in place.
type TableKey struct {
	id      process.FileID
	buildID string
	size    int64
	changed int64 // time of the last change, in ns
}

// Table describes the unwind table of one file in the kernel.
type Table struct {
	key      TableKey
	Slot     uint32
	Rows     uint32 // 0 if the file has no table; Slot is not valid then
	base     uint64 // linked address that the rows are relative to
	segments []symbol.Segment
	users    int // number of mappings
}

// maxAllRows limits the memory of all tables, at 8 bytes a row: the process decides which
// files it maps, and it may be hostile.
const maxAllRows = 1 << 25

// The numbers of the rules that always exist.
const (
	ruleNone = iota
	ruleUnsupported
)

// New returns the Tables for the programs' empty maps; inner describes the maps in o. The
// caller must call Close.
func New(o *mapofmaps.Map, rules *ebpf.Map, inner *ebpf.MapSpec) (*Tables, error) {
	memory, err := unix.Mmap(rules.FD(), 0, int(rules.MaxEntries()*rules.ValueSize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map unwind rules: %w", err)
	}
	t := &Tables{
		outer: o, inner: inner.Copy(), made: map[uint32]*ebpf.Map{},
		rules: unsafe.Slice((*unwind.Rule)(unsafe.Pointer(unsafe.SliceData(memory))), rules.MaxEntries()),
		Known: map[unwind.Rule]uint32{}, Files: map[TableKey]*Table{},
	}
	t.number(unwind.RuleNone)
	t.number(unwind.RuleUnsupported)
	return t, nil
}

// number returns the number of a rule in the kernel, and adds the rule if it is new.
// Without room it returns ruleUnsupported.
func (t *Tables) number(r unwind.Rule) uint32 {
	if n, ok := t.Known[r]; ok {
		return n
	}
	n := len(t.Known)
	if n >= len(t.rules) {
		t.full++
		return ruleUnsupported
	}
	t.rules[n] = r
	t.Known[r] = uint32(n)
	return uint32(n)
}

// KeyOf returns the key of f, an open file that m maps.
func KeyOf(m process.Mapping, f *symbol.File) TableKey {
	key := TableKey{id: process.FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}, buildID: f.BuildID()}
	key.size, key.changed = f.Stamp()
	return key
}

// find returns the table of a file and adds a user to it, or returns nil if there is
// none.
func (t *Tables) find(key TableKey) *Table {
	x := t.Files[key]
	if x != nil {
		x.users++
	}
	return x
}

// add makes the table of a file, with one user; install puts it into the kernel. built is
// nil for a file without a table. On an error the table that it returns has no rows.
func (t *Tables) add(key TableKey, built *unwind.Table, segments []symbol.Segment) (*Table, error) {
	x := &Table{key: key, segments: segments, users: 1}
	t.Files[key] = x
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
		return x, fmt.Errorf("make unwind table of %d rows: %w", len(built.Rows), host.Shortage(err))
	}
	t.made[slot] = m
	t.rows += len(built.Rows)
	x.Slot, x.Rows, x.base = slot, uint32(len(built.Rows)), built.Base
	return x, nil
}

// install puts all tables made since the last call into the kernel.
func (t *Tables) install() error {
	made := t.made
	t.made = map[uint32]*ebpf.Map{}
	if err := t.outer.Install(made); err != nil {
		return fmt.Errorf("install unwind tables: %w", err)
	}
	return nil
}

// fill writes the rows through a memory mapping of m: a system call for each row, or even
// for many, would cost more than parsing them.
func (t *Tables) fill(m *ebpf.Map, built *unwind.Table) error {
	numbers := make([]uint32, len(built.Rules))
	for i, r := range built.Rules {
		numbers[i] = t.number(r)
	}
	memory, err := unix.Mmap(m.FD(), 0, len(built.Rows)*int(unsafe.Sizeof(object.ProbeRow{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	rows := unsafe.Slice((*object.ProbeRow)(unsafe.Pointer(unsafe.SliceData(memory))), len(built.Rows))
	for i, r := range built.Rows {
		rows[i].Pc, rows[i].Rule = r.PC, numbers[r.Rule]
	}
	return unix.Munmap(memory)
}

func (t *Tables) slot() (uint32, bool) {
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

func (t *Tables) giveBack(slot uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, slot)
}

// release removes a user of x. A table without users is removed from the kernel.
func (t *Tables) release(x *Table) {
	x.users--
	if x.users > 0 {
		return
	}
	delete(t.Files, x.key)
	t.rows -= int(x.Rows)
	if x.Rows > 0 {
		t.outer.Remove(x.Slot, t.giveBack)
	}
}

// Close unmaps the rules and closes the outer map.
func (t *Tables) Close() error {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.rules))), len(t.rules)*int(unsafe.Sizeof(t.rules[0])))
	t.rules = nil
	return errors.Join(t.outer.Close(), unix.Munmap(bytes))
}
