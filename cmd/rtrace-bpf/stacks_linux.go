package main

import (
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer/plan"
)

// stackFlags select which stacks are recorded, and how they are found.
type stackFlags struct {
	depth  int // most frames; 0 for none
	all    bool
	unwind string
	verify int // one stack in verify is checked; 0 for none
}

func (s *stackFlags) declare(f *pflag.FlagSet) {
	f.VarP(flags.Number(&s.depth, plan.DefaultDepth, 0, plan.MaxDepth), "depth", "b", "record at most `N` frames of each stack; 0 records none")
	f.BoolVarP(&s.all, "backtrace-all", "A", false, "record the stacks of frees as well")
	f.Var(flags.Word(&s.unwind, plan.UnwindAuto.String(), slices.Sorted(maps.Keys(plan.Unwinds()))...), "unwind", "unwind stacks in this `WAY`: auto (unwind tables, and frame pointers for code without a table), eh (unwind tables only), fp (frame pointers only), helper (the kernel's bpf_get_stack, for comparison) or none")
	f.Var(flags.Number(&s.verify, 0, 0, flags.Unbounded), "verify-unwind", "check every `N`th stack: copy the raw stack, unwind it again with the complete unwind information, and report differences")
}

// set sets the options of stacks.
func (s *stackFlags) set(o *plan.Options) error {
	o.Depth, o.BacktraceAll, o.Unwind, o.VerifyUnwind = s.depth, s.all, plan.Unwinds()[s.unwind], s.verify
	return nil
}

// any reports whether stacks have frames.
func (s *stackFlags) any() bool { return s.depth > 0 && s.unwind != plan.UnwindNone.String() }
