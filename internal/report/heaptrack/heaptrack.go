// Package heaptrack writes the calls of a trace as a file of heaptrack, which
// heaptrack_print and heaptrack_gui read.
//
// The lines are those of version 3 of the format, as heaptrack 1.4 writes them:
// a letter, then numbers in hexadecimal. Strings (s), places in the code (i),
// nodes of the tree of stacks (t) and kinds of blocks (a) precede the lines that
// refer to them by number. A line + begins a block of a kind, and a line - ends
// one. All numbers count from 1, except those of kinds, which count from 0.
//
// Memory grows with the live blocks, the distinct stacks, and the distinct sizes
// at each stack.
package heaptrack

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Versions of heaptrack and of its format, in the first line of a file.
const (
	Program = 0x10400
	Version = 3
)

// Writer writes the calls of a trace.
type Writer struct {
	out     *bufio.Writer
	options Options
	blocks  *live.Blocks // Value is the number of the kind plus 1, or 0
	sampled live.IDs
	memo    sites.Memo
	tables  tables
	kinds   map[kind]int
	headed  bool
	clock   clock
	unknown live.Amount
	line    []byte
}

// Options configure a Writer.
type Options struct {
	// Locate appends the locations of a call's stack, the innermost first.
	Locate func(dst []stacks.Location, r *trace.Record) []stacks.Location
	// Count reports whether a block counts; nil means all. Other blocks are
	// followed, so that their frees are known.
	Count func(r *trace.Record) bool
}

// kind is what blocks have in common in the format.
type kind struct {
	size  uint64
	stack int // number of the node of its innermost frame
}

// clock is the time in milliseconds since the first call, which the format
// stores.
type clock struct{ first, written int64 }

// NewWriter returns a Writer to w. The caller closes w after Close.
func NewWriter(w io.Writer, o Options) *Writer {
	return &Writer{out: bufio.NewWriter(w), options: o, blocks: live.NewBlocks(), kinds: make(map[kind]int), tables: newTables()}
}

// Unknown returns the blocks that were live at a gap in the recording. The
// format has no place for doubt, so they end there.
func (w *Writer) Unknown() live.Amount { return w.unknown }

// Add writes what a record changes. It keeps no reference to the contents of r.
// Errors of the output are returned by Close.
func (w *Writer) Add(r *trace.Record) {
	w.memo.Observe(r)
	switch r.Kind {
	case trace.KindResource:
		w.blocks.Declare(&r.Resource)
		w.sampled.Set(r.Resource.ID, r.Resource.Sampled)
	case trace.KindRSS:
		w.head()
		w.tick(r.Time)
		w.write('R', r.RSS.Bytes/pageSize)
	case trace.KindExec:
		for _, blocks := range w.blocks.Exec(r.PID) {
			for e, fate := range blocks {
				w.end(&e, fate)
			}
		}
	case trace.KindLost:
		w.blocks.Lost(r, w.doubt)
	case trace.KindCall:
		w.call(r)
	}
}

// Close writes the name of the program, which readers accept anywhere, and
// returns the first error of the output.
func (w *Writer) Close(command string) error {
	w.head()
	fmt.Fprintf(w.out, "X %s\n", sites.Printable(command))
	return w.out.Flush()
}

// pageSize is the unit of resident memory in the file. Every machine's pages
// are multiples of it.
const pageSize = 4096

func (w *Writer) head() {
	if w.headed {
		return
	}
	w.headed = true
	w.write('v', Program, Version)
	w.write('I', pageSize, 0)
}

func (w *Writer) call(r *trace.Record) {
	w.head()
	w.tick(r.Time)
	k := &r.Call
	switch k.Op {
	case trace.OpFree:
		w.free(r, k.ID)
	case trace.OpMove:
		if k.OldID != 0 {
			w.free(r, k.OldID)
		}
		w.alloc(r)
	case trace.OpAlloc:
		w.alloc(r)
	}
}

func (w *Writer) alloc(r *trace.Record) {
	k := &r.Call
	if w.blocks.Retain(r.PID, k.Resource, k.ID) {
		return
	}
	value := uint64(0)
	if w.options.Count == nil || w.options.Count(r) {
		value = uint64(w.kind(kind{k.Size, w.memo.Number(r, w.stack)})) + 1
	}
	if !w.sampled.Has(k.Resource) {
		old, fate := w.blocks.Insert(r.PID, k.Resource, k.ID, k.Size, value)
		w.end(&old, fate)
	}
	if value != 0 {
		w.write('+', value-1)
	}
}

func (w *Writer) free(r *trace.Record, id uint64) {
	old, fate := w.blocks.Free(r.PID, r.Call.Resource, id)
	w.end(&old, fate)
}

// end writes the end of a block, unless it was written when a gap began.
func (w *Writer) end(e *live.Entry, fate live.Fate) {
	if fate == live.Known && e.Value != 0 {
		w.write('-', e.Value-1)
	}
}

// doubt ends a block whose end may be hidden by a gap.
func (w *Writer) doubt(e live.Entry) {
	if e.Value != 0 {
		w.unknown.AddBlock(e.Size)
		w.write('-', e.Value-1)
	}
}

// kind returns the number of a kind of blocks.
func (w *Writer) kind(k kind) int {
	n, ok := w.kinds[k]
	if !ok {
		n = len(w.kinds)
		w.kinds[k] = n
		w.write('a', k.size, uint64(k.stack))
	}
	return n
}

// stack returns the number of the node of a call's innermost frame.
func (w *Writer) stack(r *trace.Record) int {
	w.tables.locations = w.options.Locate(w.tables.locations[:0], r)
	return w.tables.stack(w.out)
}

// tick writes the time if its millisecond has changed.
func (w *Writer) tick(now int64) {
	if now == 0 {
		return
	}
	if w.clock.first == 0 {
		w.clock.first = now
	}
	if ms := (now - w.clock.first) / 1e6; ms > w.clock.written {
		w.clock.written = ms
		w.write('c', uint64(ms))
	}
}

// write writes a line. The first error stays in w.out.
func (w *Writer) write(letter byte, numbers ...uint64) {
	w.line = append(w.line[:0], letter)
	for _, n := range numbers {
		w.line = strconv.AppendUint(append(w.line, ' '), n, 16)
	}
	_, _ = w.out.Write(append(w.line, '\n'))
}
