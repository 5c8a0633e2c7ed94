package library

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Names for callers outside of libraries.
const (
	Unmapped = "[unmapped]" // no known mapping contains the caller
	Unknown  = "[unknown]"  // the caller is unknown
)

// Key is a library of a process.
type Key struct {
	PID  int32
	Path string
}

// Sums holds the allocations of a library within the counted window.
type Sums struct {
	Key
	Allocs uint64 // blocks allocated
	Bytes  uint64 // their total size
	Frees  uint64 // frees of blocks that it allocated at any time, by any library
	// Persistent is the number of blocks in Allocs that are live at the end,
	// and PersistentBytes their size.
	Persistent, PersistentBytes uint64
	// Start, End, Min and Max are the library's live bytes at the start and the
	// end of the window and their extremes in it, including blocks allocated
	// earlier.
	Start, End, Min, Max uint64
	// Live is the number of its live blocks at the end.
	Live uint64
}

// Account counts allocations by library.
type Account struct {
	maps    *Maps
	blocks  *live.Table
	numbers map[Key]uint32
	sums    []Sums
	begun   bool
	// Unmatched is the number of frees in the window of unknown blocks: they
	// were allocated before the trace, or their allocation was lost.
	Unmatched uint64
}

// NewAccount returns an empty Account.
func NewAccount() *Account {
	return &Account{maps: NewMaps(false), blocks: live.New(), numbers: map[Key]uint32{}}
}

// window is set in the value of blocks that were allocated in the window.
const window = 1 << 32

// Add processes a record. counts reports whether a call lies in the counted
// window; blocks are followed outside of it, too.
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

// begin starts the window.
func (a *Account) begin() {
	a.begun = true
	for i := range a.sums {
		s := &a.sums[i]
		s.Start, s.Min, s.Max = s.End, s.End, s.End
	}
}

// Library returns the path of the library that made a call, [Unmapped] or
// [Unknown].
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
		a.remove(&old) // the trace lacks its free
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

// remove subtracts a block from the sums of its library.
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

// List returns the sums of all libraries, by process, those with the most
// persistent bytes first.
func (a *Account) List() []Sums {
	all := slices.Clone(a.sums)
	slices.SortFunc(all, func(x, y Sums) int {
		return cmp.Or(cmp.Compare(x.PID, y.PID), cmp.Compare(y.PersistentBytes, x.PersistentBytes),
			cmp.Compare(y.End, x.End), cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Path, y.Path))
	})
	return all
}
