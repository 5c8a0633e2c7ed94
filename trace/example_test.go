package trace_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/decoder"
	"rtrace-bpf/trace"
)

// waste is an analysis: how much of the memory that the GNU C library allocates is
// rounding, by the function that allocated it. It works with any trace.Reader.
type waste struct {
	live map[uint64]block // by address
}

type block struct {
	function string
	rounding uint64 // bytes
}

// chunk returns the bytes that glibc uses for a block on 64-bit machines: eight more
// than asked for, a multiple of 16, and at least 32.
func chunk(size uint64) uint64 { return max(32, (size+8+15)&^15) }

// read reads the records of a trace one by one. A record and everything that it refers
// to, also its strings, are valid until the next one is read. So read copies what it
// keeps.
func (w *waste) read(r trace.Reader) error {
	var rec trace.Record
	for {
		err := r.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // wraps trace.ErrTruncated if the trace is cut
		}
		switch call := &rec.Call; {
		case rec.Kind == trace.KindExec:
			clear(w.live) // the memory of the old program is gone
		case rec.Kind != trace.KindCall:
			// Mappings, threads, marks and so on.
		case call.Op == trace.OpFree:
			delete(w.live, call.ID)
		case call.Op == trace.OpMove: // realloc: a free and an allocation in one
			delete(w.live, call.OldID)
			w.add(call)
		case call.Op == trace.OpAlloc:
			w.add(call)
		}
	}
}

func (w *waste) add(c *trace.Call) {
	w.live[c.ID] = block{strings.Clone(c.Function), chunk(c.Size) - c.Size}
}

// sum returns the wasted bytes by function.
func (w *waste) sum() map[string]uint64 {
	lost := make(map[string]uint64)
	for _, b := range w.live {
		lost[b.function] += b.rounding
	}
	return lost
}

// A program that reads a trace of any format, compressed or not, and prints the
// result of its own analysis.
func ExampleReader() {
	in, err := decoder.OpenFile("../testdata/corpus/sp-rtrace/c-leaks.rtrace", decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // only read

	w := waste{live: make(map[uint64]block)}
	switch err := w.read(in); {
	case errors.Is(err, trace.ErrTruncated):
		fmt.Println("the trace is cut; this is about what is whole of it")
	case err != nil:
		fmt.Println(err)
		return
	}
	lost := w.sum()
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		fmt.Printf("%-14s %d bytes are rounding\n", name, lost[name])
	}
	// Output:
	// calloc         12 bytes are rounding
	// malloc         91 bytes are rounding
	// posix_memalign 16 bytes are rounding
}
