package library

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Names of what is no library.
const (
	Unmapped = "[unmapped]" // the caller is in no mapping that is known
	Unknown  = "[unknown]"  // the caller is not known
)

// Key is a library of a process.
type Key struct {
	PID  int32
	Path string
}

// Sums is what a library did within the window that is counted.
type Sums struct {
	Key
	Allocs uint64 // blocks that it allocated
	Bytes  uint64 // of them
	Frees  uint64 // of blocks that it allocated at any time, whoever freed them
	// Persistent is how many of the blocks of Allocs are live at the end, and
	// PersistentBytes their size.
	Persistent, PersistentBytes uint64
	// Start, End, Min and Max are the live bytes of the library, whenever they were
	// allocated.
	Start, End, Min, Max uint64
	// Live is how many blocks it has at the end.
	Live uint64
}

// Account counts by libraries.
type Account struct {
	maps    *Maps
	blocks  *live.Table
	numbers map[Key]uint32
	sums    []Sums
	begun   bool
	// Unmatched is how many frees there were of blocks that are not known: they
	// were allocated before the trace, or their allocation is lost.
	Unmatched uint64
}

// NewAccount returns an Account without anything in it.
func NewAccount() *Account {
	return &Account{maps: NewMaps(false), blocks: live.New(), numbers: map[Key]uint32{}}
}

// window marks in the value of a block that it was allocated in the window.
const window = 1 << 32

// Add takes a record. A call counts if counts says so: is it in the window that is
// looked at; blocks are followed also without.
func (a *Account) Add(r *trace.Record, counts bool) {
	if r.Kind != trace.KindCall {
		a.maps.Add(r)
		if r.Kind == trace.KindExec {
			a.exec(r.PID)
		}
		return
	}
	if counts && !a.begun {
		a.begin()
	}
	c := &r.Call
	switch {
	case c.Op == trace.OpFree:
		a.free(r.PID, c.ID, counts)
	case c.Op == trace.OpMove && c.OldID != 0:
		a.free(r.PID, c.OldID, counts)
		a.alloc(r, counts)
	case c.Op == trace.OpMove || c.Op == trace.OpAlloc:
		a.alloc(r, counts)
	}
}

// begin begins the window.
func (a *Account) begin() {
	a.begun = true
	for i := range a.sums {
		s := &a.sums[i]
		s.Start, s.Min, s.Max = s.End, s.End, s.End
	}
}

// Library returns the library that a call came from.
func (a *Account) Library(r *trace.Record) string {
	frames := r.Call.Stack.Frames
	if len(frames) == 0 {
		return Unknown
	}
	if path, ok := a.maps.Find(r.PID, frames[0]); ok {
		return path
	}
	return Unmapped
}

func (a *Account) alloc(r *trace.Record, counts bool) {
	key := Key{r.PID, a.Library(r)}
	n, ok := a.numbers[key]
	if !ok {
		n = uint32(len(a.sums))
		a.numbers[key] = n
		a.sums = append(a.sums, Sums{Key: key})
	}
	s := &a.sums[n]
	value := uint64(n)
	if counts {
		value |= window
		s.Allocs++
		s.Bytes += r.Call.Size
		s.Persistent++
		s.PersistentBytes += r.Call.Size
	}
	if old, replaced := a.blocks.Insert(uint32(r.PID), r.Call.ID, r.Call.Size, value); replaced {
		a.remove(&old) // its free is missing
	}
	s.Live++
	s.End += r.Call.Size
	s.Max = max(s.Max, s.End)
}

func (a *Account) free(pid int32, id uint64, counts bool) {
	old, ok := a.blocks.Remove(uint32(pid), id)
	if !ok {
		if counts {
			a.Unmatched++
		}
		return
	}
	if s := a.remove(&old); counts {
		s.Frees++
	}
}

// remove takes a block off the sums of its library.
func (a *Account) remove(old *live.Entry) *Sums {
	s := &a.sums[uint32(old.Value)]
	if old.Value&window != 0 {
		s.Persistent--
		s.PersistentBytes -= old.Size
	}
	s.Live--
	s.End -= old.Size
	if a.begun {
		s.Min = min(s.Min, s.End)
	}
	return s
}

// exec ends the blocks of a process.
func (a *Account) exec(pid int32) {
	var gone []live.Entry
	for e := range a.blocks.All() {
		if e.Resource == uint32(pid) {
			gone = append(gone, e)
		}
	}
	for i := range gone {
		a.blocks.Remove(gone[i].Resource, gone[i].ID)
		a.remove(&gone[i])
	}
}

// List returns the sums of all libraries, by process, those with the most live
// bytes first.
func (a *Account) List() []Sums {
	all := slices.Clone(a.sums)
	slices.SortFunc(all, func(x, y Sums) int {
		return cmp.Or(cmp.Compare(x.PID, y.PID), cmp.Compare(y.PersistentBytes, x.PersistentBytes),
			cmp.Compare(y.End, x.End), cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Path, y.Path))
	})
	return all
}
