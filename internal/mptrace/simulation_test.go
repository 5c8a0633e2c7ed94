package mptrace_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// counter wraps the allocator of a simulation (with the linker's --wrap) and
// prints its calls, and the live blocks at the end.
const counter = `
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t), *__real_realloc(void *, size_t);
void __real_free(void *);

static unsigned long mallocs, reallocs, frees, blocks, bytes;
static int off;

void *__wrap_malloc(size_t size)
{
	size_t *p = __real_malloc(size + 16);
	if (!p || off)
		abort();
	*p = size;
	mallocs++, blocks++, bytes += size;
	return p + 2;
}

void __wrap_free(void *p)
{
	if (!p || off)
		abort();
	frees++, blocks--, bytes -= ((size_t *)p)[-2];
	__real_free((size_t *)p - 2);
}

void *__wrap_realloc(void *old, size_t size)
{
	size_t *p = old;
	if (!p || off)
		abort();
	bytes += size - p[-2];
	p = __real_realloc(p - 2, size + 16);
	if (!p)
		abort();
	*p = size;
	reallocs++;
	return p + 2;
}

__attribute__((destructor)) static void report(void)
{
	off = 1;
	fprintf(stderr, "%lu %lu %lu, %lu live, %lu bytes\n", mallocs, reallocs, frees, blocks, bytes);
}
`

// simulate compiles and runs the simulation of events and returns its own
// output and that of the counter.
func simulate(t *testing.T, events []wire.Event) (own, counted string, b *mptrace.Book) {
	t.Helper()
	b = mptrace.NewBook()
	s := mptrace.NewSimulation()
	source := s.AppendBegin(nil)
	for i := range events {
		var n mptrace.Entry
		if b.Add(&events[i], &n); n.Done {
			source = s.AppendEvent(source, &n)
		}
	}
	source = s.AppendEnd(source)
	dir := t.TempDir()
	program := filepath.Join(dir, "simulation")
	for name, text := range map[string]string{"simulation.c": string(source), "counter.c": counter} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cc := func(args ...string) {
		cmd := exec.Command("cc", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cc %v: %v\n%s", args, err, out)
		}
	}
	cc("-std=c99", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "simulation.c")
	cc("-o", program, "simulation.o", "counter.c", "-Wl,--wrap=malloc,--wrap=realloc,--wrap=free")
	cmd := exec.Command(program, "-c")
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errOut, err := os.Create(filepath.Join(dir, "err"))
	if err != nil {
		t.Fatal(err)
	}
	defer errOut.Close()
	cmd.Stdout, cmd.Stderr = out, errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("the simulation: %v", err)
	}
	read := func(f *os.File) string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return read(out), read(errOut), b
}

// A simulation repeats the calls of the trace and ends with the same live
// blocks.
func TestSimulation(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var many []wire.Event
	for i := range uint64(20_000) { // more live blocks than mptrace can replay
		many = append(many, alloc(i, 16, r.Uint64N(200)))
		if r.UintN(3) == 0 {
			many = append(many, free(r.Uint64N(i+1)))
		}
		if r.UintN(4) == 0 {
			many = append(many, realloc(r.Uint64N(i+1), 32, r.Uint64N(300)))
		}
	}
	for _, tt := range []struct {
		name   string
		events []wire.Event
	}{
		{name: "nothing"},
		{name: "sizes of 0", events: []wire.Event{alloc(1, 16, 0), alloc(2, 16, 5), realloc(2, 16, 0), free(1)}},
		{name: "twice and unknown", events: []wire.Event{alloc(1, 16, 7), alloc(1, 32, 9), free(5), realloc(6, 1, 1)}},
		{name: "many", events: many},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own, counted, b := simulate(t, tt.events)
			total := b.Totals()
			reallocs, grown := uint64(0), uint64(0)
			again := mptrace.NewBook()
			last := map[uint64]uint64{}
			for i := range tt.events {
				var n mptrace.Entry
				again.Add(&tt.events[i], &n)
				if n.Done && n.Kind == wire.Realloc {
					reallocs++
				}
				if n.Done {
					last[n.Index] = 0
					if n.Kind == wire.Realloc && n.Size == 0 {
						last[n.Index] = 1 // an empty block is allocated with 1 byte
					}
				}
			}
			for _, one := range last {
				grown += one
			}
			mallocs, frees := total.Allocated.Count-reallocs, total.Freed.Count-reallocs
			if d := cmp.Diff(fmt.Sprintf("malloc %d\nrealloc %d\nfree %d\n", mallocs, reallocs, frees), own); d != "" {
				t.Errorf("own count (-want +got):\n%s", d)
			}
			want := fmt.Sprintf("%d %d %d, %d live, %d bytes\n", mallocs, reallocs, frees, total.Live.Count, total.Live.Bytes+grown)
			if d := cmp.Diff(want, counted); d != "" {
				t.Errorf("counted (-want +got):\n%s", d)
			}
		})
	}
}

// The simulation reports allocations that fail.
func TestSimulationOutOfMemory(t *testing.T) {
	s := mptrace.NewSimulation()
	source := s.AppendBegin(nil)
	n := mptrace.Entry{Kind: wire.Alloc, Done: true, Index: 1, Size: 1 << 62}
	source = s.AppendEnd(s.AppendEvent(source, &n))
	dir := t.TempDir()
	file := filepath.Join(dir, "s.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "s")
	if out, err := exec.Command("cc", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err == nil || string(out) != "call 1: no memory for 4611686018427387904 bytes\n" {
		t.Errorf("%v, %q", err, out)
	}
}
