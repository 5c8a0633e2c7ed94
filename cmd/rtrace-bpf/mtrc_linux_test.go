package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// mtrcPath returns the path of the one MTRC file in the command's directory.
func (r *running) mtrcPath() string {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*-0.mtrc"))
	if err != nil || len(all) != 1 {
		r.t.Fatalf("traces in the directory: %v, %v", all, err)
	}
	return all[0]
}

// scan reads the events of an MTRC file, which must end with its trailer.
func scan(t *testing.T, path string) (wire.Header, []wire.Event) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	testutil.MTRCRules{}.Check(t, data)
	return scanFrom(t, bytes.NewReader(data))
}

func scanFrom(t *testing.T, in io.Reader) (wire.Header, []wire.Event) {
	t.Helper()
	s, err := mtrc.NewScanner(in, mtrc.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []wire.Event
	for {
		var e wire.Event
		if err = s.Next(&e); err != nil {
			break
		}
		all = append(all, e)
	}
	if !errors.Is(err, io.EOF) || !s.Whole() {
		t.Fatalf("after %d events: %v, with trailer: %v", len(all), err, s.Whole())
	}
	if more, err := s.NextStream(); more || err != nil {
		t.Errorf("after the trailer: %v, %v", more, err)
	}
	return s.Header(), all
}

// place is where in the code an event was made; file is the last part of the path.
type place struct {
	function, file string
	line           uint64
}

func placeOf(e *wire.Event) place {
	p := place{function: e.Source.Function.Text, line: e.Source.Line}
	if e.Source.File.Known {
		p.file = filepath.Base(e.Source.File.Text)
	}
	return p
}

// effect is an event with the block that it is about.
type effect struct {
	kind      wire.Kind
	old, made uint64 // addresses; 0 for none
	size      uint64
	place     place
}

// effects returns the effects of each thread, which it finds by following the indices of
// events. It checks what holds for any file: an index is new at its A and live at its R and
// F, and no two live blocks overlap.
func effects(t *testing.T, events []wire.Event) map[uint64][]effect {
	t.Helper()
	type block struct{ address, size uint64 }
	live, seen, at := map[uint64]block{}, map[uint64]bool{}, map[uint64]uint64{}
	all := map[uint64][]effect{}
	for i, e := range events {
		if e.Kind == wire.Heap || e.Kind == wire.Internal {
			continue
		}
		b, ok := live[e.Index]
		if ok == (e.Kind == wire.Alloc) || e.Index == 0 || e.Kind == wire.Alloc && seen[e.Index] {
			t.Fatalf("event %d, %c: index %d is live: %v", i, e.Kind, e.Index, ok)
		}
		x := effect{kind: e.Kind, old: b.address, size: e.Size, place: placeOf(&e)}
		delete(at, b.address)
		delete(live, e.Index)
		if e.Kind != wire.Free {
			x.made = e.Address
			if other, taken := at[e.Address]; taken {
				t.Fatalf("event %d, %c: block %d is at %#x as well", i, e.Kind, other, e.Address)
			}
			live[e.Index], seen[e.Index], at[e.Address] = block{e.Address, e.Size}, true, e.Index
		}
		all[e.Source.Thread] = append(all[e.Source.Thread], x)
	}
	return all
}

// logged returns the calls in the log of a program as MTRC has them: a realloc that changes
// nothing has no event. Frees have places only if the trace has stacks of frees.
func logged(report *testutil.Report, frees bool) map[uint64][]effect {
	kinds := map[string]wire.Kind{"alloc": wire.Alloc, "free": wire.Free, "move": wire.Realloc}
	sizes, all := map[uint64]uint64{}, map[uint64][]effect{}
	for _, c := range report.Done() {
		if c.Op == "move" && c.Old == c.Ptr && sizes[c.Ptr] == c.Size {
			continue
		}
		sizes[c.Ptr] = c.Size
		x := effect{kind: kinds[c.Op], old: c.Old, made: c.Ptr, size: c.Size}
		if c.Caller != "" {
			x.place = place{c.Caller, "threads_cxx.cpp", c.Line}
		}
		if x.kind == wire.Free && !frees {
			x.place = place{}
		}
		all[uint64(c.TID)] = append(all[uint64(c.TID)], x)
	}
	return all
}

// inHeap checks that each block lies in memory of an H event before it.
func inHeap(t *testing.T, events []wire.Event) {
	t.Helper()
	type extent struct{ start, end uint64 }
	var heap []extent
	holds := func(addr uint64) bool {
		return slices.ContainsFunc(heap, func(x extent) bool { return x.start <= addr && addr < x.end })
	}
	for i, e := range events {
		switch e.Kind {
		case wire.Heap:
			heap = append(heap, extent{e.Address, e.Address + e.Size})
		case wire.Alloc, wire.Realloc:
			if !holds(e.Address) || !holds(e.Address+max(e.Size, 1)-1) {
				t.Fatalf("event %d, %c: %d bytes at %#x are in no memory of the heap", i, e.Kind, e.Size, e.Address)
			}
		}
	}
	if len(heap) == 0 {
		t.Error("no memory of the heap")
	}
}

// TestMTRC compares a trace of a threaded C++ program with the program's log.
func TestMTRC(t *testing.T) {
	testutil.EachWidth(t, mtrcOfThreads)
}

func mtrcOfThreads(t *testing.T, build testutil.Builder) {
	tool := rtrace(t)
	for name, test := range map[string]struct {
		args  []string
		names bool
		frees bool
	}{
		"names":          {nil, true, false},
		"names of frees": {[]string{"-A"}, true, true},
		"no names":       {[]string{"--mtrc-names=off", "-A"}, false, false},
		"no stacks":      {[]string{"-b", "0"}, false, false},
		"no unwinding":   {[]string{"--unwind=none"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			child := waitingOf(t, build, "threads_cxx", "20")
			r := start(t, child, append(test.args, "--format", "mtrc")...)
			child.Go()
			report := child.Report()
			r.ends(cli.OK)
			r.says("lost: 0")
			header, events := scan(t, r.mtrcPath())
			// Words are as wide as the program's pointers.
			if header != (wire.Header{Words: pointerSize(t, build(t, "threads_cxx")), Version: wire.Version}) {
				t.Errorf("header %+v", header)
			}
			inHeap(t, events)
			for i, e := range events {
				if e.Kind == wire.Alloc && e.Source.Function.Known != test.names {
					t.Fatalf("event %d: %+v", i, e)
				}
			}
			got, want := effects(t, events), logged(report, test.frees)
			for thread, list := range want {
				equal(t, thread, list, got[thread], test.names)
				delete(got, thread)
			}
			if len(got) > 0 {
				t.Errorf("calls of unknown threads: %v", got)
			}
			statistics(t, tool, r.mtrcPath(), logged(report, false))
		})
	}
}

// statistics compares the output of rtrace mptrace for a trace with the log.
func statistics(t *testing.T, tool, path string, log map[uint64][]effect) {
	t.Helper()
	var made, madeBytes, freed, left, largest uint64
	smallest := uint64(math.MaxUint64)
	for _, list := range log {
		for _, x := range list {
			if x.kind != wire.Alloc {
				freed++
			}
			if x.kind != wire.Free {
				made, madeBytes = made+1, madeBytes+x.size
				largest = max(largest, x.size)
				if x.size > 0 {
					smallest = min(smallest, x.size)
				}
			}
		}
	}
	// The last event of each thread leaves a block.
	for _, list := range log {
		left += list[len(list)-1].size
	}
	out, err := exec.Command(tool, "mptrace", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("\nallocated: %d (%d bytes)\n", made, madeBytes),
		fmt.Sprintf("\nfreed:     %d (%d bytes)\n", freed, madeBytes-left),
		fmt.Sprintf("\nunfreed:   %d (%d bytes)\n", len(log), left),
		fmt.Sprintf("\nsmallest size: %d bytes\n", smallest),
		fmt.Sprintf("\nlargest size:  %d bytes\n", largest),
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// equal compares the events of a thread, with their places where the log has them.
func equal(t *testing.T, thread uint64, want, got []effect, names bool) {
	t.Helper()
	got = joined(want, got)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) {
			t.Errorf("thread %d: %d events, want %d", thread, len(got), len(want))
			return
		}
		g, w := got[i], want[i]
		if !names {
			w.place = place{}
		} else if w.place == (place{}) {
			g.place = place{}
		}
		if g != w {
			t.Errorf("thread %d, event %d: %+v, want %+v", thread, i, g, w)
			return
		}
	}
}

// joined replaces a free and an allocation in a trace by a realloc if the log has one
// there. A realloc is recorded as two events if it took long, or if another thread got the
// old block before it ended.
func joined(want, got []effect) []effect {
	var all []effect
	for _, x := range got {
		if n := len(all); n > 0 && n <= len(want) {
			w, freed := want[n-1], all[n-1]
			if w.kind == wire.Realloc && freed.kind == wire.Free && x.kind == wire.Alloc && freed.old == w.old {
				x.kind, x.old = wire.Realloc, freed.old
				all[n-1] = x
				continue
			}
		}
		all = append(all, x)
	}
	return all
}

func TestJoined(t *testing.T) {
	move := effect{kind: wire.Realloc, old: 1, made: 2, size: 3}
	free, made := effect{kind: wire.Free, old: 1}, effect{kind: wire.Alloc, made: 2, size: 3}
	for name, test := range map[string]struct{ want, got, joined []effect }{
		"whole":      {[]effect{move, made}, []effect{move, made}, []effect{move, made}},
		"two":        {[]effect{made, move, made}, []effect{made, free, made, made}, []effect{made, move, made}},
		"two indeed": {[]effect{free, made}, []effect{free, made}, []effect{free, made}},
		"cut":        {[]effect{move}, []effect{free}, []effect{free}},
		"more":       {nil, []effect{free, made}, []effect{free, made}},
	} {
		if got := joined(test.want, test.got); !slices.Equal(got, test.joined) {
			t.Errorf("%s: %+v, want %+v", name, got, test.joined)
		}
	}
}
