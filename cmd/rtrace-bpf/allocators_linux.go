package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer/plan"
)

// allocatorFlags select which allocators are traced, and what of their calls and of the
// heap is recorded.
type allocatorFlags struct {
	names      []string
	library    string
	symbols    symbols
	minSize    flags.Size // of blocks
	args       bool
	operators  string
	way        string // in which allocations are recorded
	verify     int    // one allocation in verify is compared; 0 for none
	noLive     bool
	heapGrowth bool
	heapInfo   bool
}

func (a *allocatorFlags) declare(f *pflag.FlagSet) {
	f.StringArrayVar(&a.names, "allocator", nil, "trace only the allocator `NAME`: "+strings.Join(plan.AllocatorKinds(), ", ")+
		", or prefix:P for functions called Pmalloc, Pfree and so on; may be repeated (default: the allocator that serves the process, the C library's, and those with known prefixes)")
	flags.Offer(f, "allocator", plan.AllocatorKinds()...)
	f.StringVar(&a.library, "library", "", "trace only the allocator that the mapped file `PATH` defines")
	f.Var(&a.symbols, "symbol", "the address of an allocator's function that the program, or the file of --library, has no symbol for: `NAME=ADDR`, with the address as nm prints it; may be repeated")
	f.Var(&a.minSize, "min-size", "leave out blocks smaller than `BYTES` (suffixes K, M, G), and their frees")
	f.BoolVar(&a.args, "args", false, "also record the arguments of calls of allocators: size, nmemb, alignment, ptr; calls of other modules always have theirs")
	f.Var(flags.Word(&a.operators, "new", "new", "all", "none"), "operators", "record C++ operators of `WHICH` kind under their own names, instead of the malloc and free that they call: new (allocations, by the operator new whose code calls malloc), all (each form of new and delete, with probes of their own: one more on each new, and one or two on each delete) or none")
	f.Var(flags.Word(&a.way, "returns", "returns", "paths"), "allocations", "record allocations in this `WAY`: returns (a breakpoint at the entry of the function and a return probe) or paths (one breakpoint inside the function, where its code was proved to allow that; x86-64 only, new)")
	f.Var(flags.Number(&a.verify, 0, 0, flags.Unbounded), "verify-sites", "with --allocations=paths, compare every `N`th allocation with the entry and the return of its function, and report differences")
	f.BoolVar(&a.noLive, "no-live", false, "do not track live blocks: uses less memory, and the summary has no live blocks")
	f.BoolVar(&a.heapGrowth, "heap-growth", false, "also record the memory that the allocator gets from the system; mtrc always contains it")
	f.BoolVar(&a.heapInfo, "heap-info", false, "end the trace with the state of the heap, as mallinfo reports it; values that need symbols of the C library are 0 without them, and a message and the side file name these values")
}

// checkValues returns an error if an allocator's name is unknown, with the name that was
// probably meant.
func (a *allocatorFlags) checkValues(*config) error {
	if a.verify > 0 && plan.WayChoices()[a.way] != plan.WaysPaths {
		return errors.New("--verify-sites: only --allocations=paths has sites to verify")
	}
	o := plan.Options{PID: anyPID, Allocators: a.names}
	err := o.Check()
	if err == nil {
		return nil
	}
	for _, name := range a.names {
		if meant := cli.Nearest(name, plan.AllocatorKinds()); meant != "" && meant != name {
			return fmt.Errorf("--allocator %s: did you mean --allocator %s?", cli.Word(name), meant)
		}
	}
	return fmt.Errorf("--allocator: %w", err)
}

// checkHeapInfo returns an error if other flags leave no place for the state of the heap.
func (a *allocatorFlags) checkHeapInfo(c *config) error {
	switch {
	case !a.heapInfo:
		return nil
	case !slices.Contains([]string{"sprtrace", "text", "jsonl", "nettrace"}, c.format.name):
		return fmt.Errorf("--heap-info: %s has no place for the state of the heap; sprtrace, text, nettrace and jsonl have", c.format.name)
	case c.dotnet.alone():
		return errors.New("--heap-info does not go with --dotnet alone: the runtime has its own heap")
	}
	return nil
}

// set sets the options of allocators.
func (a *allocatorFlags) set(o *plan.Options) error {
	o.Allocators, o.Library, o.Symbols = a.names, a.library, a.symbols
	o.MinSize, o.Args, o.NoLive = uint64(a.minSize), a.args, a.noLive
	o.Operators, o.HeapGrowth = plan.OperatorChoices()[a.operators], a.heapGrowth
	o.Ways, o.VerifySites = plan.WayChoices()[a.way], a.verify
	return nil
}

// symbols are addresses of functions, given as NAME=ADDR.
type symbols map[string]uint64

var _ pflag.Value = (*symbols)(nil)

// Set adds a function. Its address is hexadecimal, with or without 0x.
func (s *symbols) Set(text string) error {
	name, digits, ok := strings.Cut(text, "=")
	addr, err := strconv.ParseUint(strings.TrimPrefix(digits, "0x"), 16, 64)
	if !ok || name == "" || err != nil || addr == 0 {
		return &flags.ValueError{Wrong: "not a function and its address", Write: "one as malloc=401136, the address in hexadecimal"}
	}
	if *s == nil {
		*s = symbols{}
	}
	if old, ok := (*s)[name]; ok && old != addr {
		return fmt.Errorf("%s is at %x or at %x, not at both", name, old, addr)
	}
	(*s)[name] = addr
	return nil
}

// String returns what was set.
func (s *symbols) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*s)) {
		all = append(all, fmt.Sprintf("%s=%x", name, (*s)[name]))
	}
	return strings.Join(all, " ")
}

// Type names the kind of value for pflag.
func (s *symbols) Type() string { return "symbol" }
