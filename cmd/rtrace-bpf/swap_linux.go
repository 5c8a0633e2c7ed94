package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer/activity"
	calls "rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/plan"
)

// swapFlags select how SWAP is written, and what it contains in addition to allocations.
type swapFlags struct {
	dialect  string
	time     string
	noStacks bool
	activity activityFlags
	machine  machineFlags
	// functions and values select calls of functions, and values at instructions.
	functions, values []string
}

// activityFlags select events of the threads of the process.
type activityFlags struct {
	sample   time.Duration // between two samples; 0 for none
	switches bool
	syscalls []string
	files    bool
}

// machineFlags select what is recorded of the machine, and a report at the end.
type machineFlags struct {
	period time.Duration // between two states of the machine; 0 for none
	leaks  bool
}

// The shortest and the longest time between two states of the machine.
const (
	shortestPeriod = 10 * time.Millisecond
	longestPeriod  = time.Second
)

func (s *swapFlags) declare(f *pflag.FlagSet) {
	f.Var(flags.Word(&s.dialect, "document", "document", "kernel"), "swap-dialect", "write swap in this `DIALECT`: document, with command lines, or kernel, with task names of 15 bytes as devices sent them")
	f.Var(flags.Word(&s.time, "seconds-first", "seconds-first", "formula"), "swap-time", "write the times of swap in this `ORDER`: seconds-first, as all public writers do, or formula, as the newer protocol text specifies")
	f.BoolVar(&s.noStacks, "swap-no-stacks", false, "leave the private messages with complete stacks out of swap; its standard messages contain the caller only")
	s.activity.declare(f)
	f.StringArrayVar(&s.functions, "function", nil, "in swap, record calls of the function `LIB:SYM(ARGS)RET`, such as libc.so.6:open(sd)d; may be repeated. LIB is the path or name of a mapped file, or empty for the program; SYM is a symbol, a C++ name as in the source, or +0xADDRESS. "+
		"ARGS has a letter for each argument: b bool, c char, d int, x long, p pointer, s text; in 32-bit programs also f float and w double. RET is one of b c d x p s for the result, v for none, or n to record the end of the call without its result; without RET, ends of calls are not recorded")
	f.StringArrayVar(&s.values, "fbi", nil, "in swap, record a value whenever a thread reaches an instruction: `LIB:SYM+0xOFFSET@ID=VALUE/BYTES`, such as :work+0x1c@7=[rdi+8]/4; may be repeated. ID is the number of the variable in messages; VALUE is a register such as rdi, or memory such as [rdi+8] or [[rsp-0x10]+4]; 512 bytes at most")
	s.machine.declare(f)
}

func (a *activityFlags) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&a.sample), "swap-sample", "in swap, record where running threads are, every `PERIOD` from 1ms to 100ms; 10ms is recommended, and costs the process one percent")
	f.BoolVar(&a.switches, "swap-switches", false, "in swap, record when threads leave a processor and when they run again; each switch costs the process about 0.4 microseconds, and all other processes on the machine 0.3")
	f.StringSliceVar(&a.syscalls, "swap-syscalls", nil, "in swap, record system calls of these `CLASSES`, separated by commas: "+activity.ClassNames()+" or all; each costs the process about 0.5 microseconds, and each system call of all other processes on the machine, of any class, 0.2")
	flags.OfferSeveral(f, "swap-syscalls", ",", append(strings.Split(activity.ClassNames(), ", "), "all")...)
	f.BoolVar(&a.files, "swap-files", false, "in swap, record what other processes do with files that the process has open; each system call of all other processes on the machine costs about 0.3 microseconds, and one that uses a descriptor of any file 0.7")
}

func (m *machineFlags) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&m.period), "swap-system", "in swap, record the state of the machine every `PERIOD`, 10ms to 1s: loads, memory, disks and network, and the loads of the process and each of its threads (default: never)")
	f.BoolVar(&m.leaks, "swap-lsan", false, "at the end of the recording, write the blocks that were not freed to a file next to the trace, with the suffix .leaks, and name that file in swap")
}

func (a *activityFlags) any() bool {
	return a.sample != 0 || a.switches || len(a.syscalls) > 0 || a.files
}

// check returns an error if flags about SWAP do not go with others.
func (s *swapFlags) check(c *config) error {
	if c.format.name != "swap" || c.dotnet.on {
		switch {
		case s.activity.any():
			return errors.New("--swap-sample, --swap-switches, --swap-syscalls and --swap-files go with --format swap, and not with --dotnet")
		case len(s.functions)+len(s.values) > 0:
			return errors.New("--function and --fbi go with --format swap, and not with --dotnet")
		}
	}
	return s.machine.check(c)
}

func (m *machineFlags) check(c *config) error {
	option := "--swap-system"
	if m.leaks {
		option = "--swap-lsan"
	}
	switch {
	case m.period == 0 && !m.leaks:
		return nil
	case c.format.name != "swap" || c.dotnet.on:
		return fmt.Errorf("%s goes with --format swap, and not with --dotnet: no other format has a place for it", option)
	case m.period != 0 && (m.period < shortestPeriod || m.period > longestPeriod):
		return fmt.Errorf("--swap-system %v is not in %v to %v", m.period, shortestPeriod, longestPeriod)
	case !m.leaks:
		return nil
	case c.output.toStdout():
		return errors.New("--swap-lsan writes a file next to the trace: name a directory or a file with -o")
	case c.allocators.noLive:
		return errors.New("--swap-lsan needs the live blocks, which --no-live does not track: name one of them")
	case c.allocators.minSize > 0:
		return errors.New("--min-size leaves blocks out, so that --swap-lsan cannot report all that were not freed: name one of them")
	case c.limits.maxRate > 0:
		return errors.New("--max-rate loses frees, so that --swap-lsan cannot report what was not freed: name one of them")
	}
	return nil
}

// set sets the options of what is recorded for SWAP.
func (s *swapFlags) set(o *plan.Options) error {
	if err := s.activity.set(&o.Activity); err != nil {
		return err
	}
	for _, text := range s.functions {
		f, err := calls.ParseFunction(text)
		if err != nil {
			return fmt.Errorf("--function %w", err)
		}
		o.Functions.Functions = append(o.Functions.Functions, f)
	}
	for _, text := range s.values {
		v, err := calls.ParseValue(text)
		if err != nil {
			return fmt.Errorf("--fbi %w", err)
		}
		o.Functions.Values = append(o.Functions.Values, v)
	}
	return nil
}

func (a *activityFlags) set(o *activity.Options) error {
	classes, err := activity.ParseClasses(a.syscalls)
	if err != nil {
		return fmt.Errorf("--swap-syscalls: %w", err)
	}
	*o = activity.Options{Sample: a.sample, Switches: a.switches, Calls: classes, Files: a.files}
	if err := o.Check(); err != nil {
		return fmt.Errorf("--swap-sample: %w", err)
	}
	return nil
}
