package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/allocmap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
)

// allocmapCommand prints where the blocks of a heap are, like sp-rtrace-allocmap and the
// script rtrace-allocmap.
func allocmapCommand() command {
	return command{
		name: "allocmap",
		page: cli.Page{
			Summary:  "print which pages of the heap have live blocks, like sp-rtrace-allocmap",
			Synopsis: []string{"[flags] [FILE ...]"},
			About: "Prints a map of the heap, a character per page, to show what keeps it from shrinking. With a single FILE, # is a page with a block that is still live " +
				"at the end. With several, a page shows the number of the last FILE that has such a block there, counted from 0.\n\n" +
				"FILE is a trace, or a list of blocks: lines with a hexadecimal address and a decimal size. Lines before the blocks describe the heap: # base=ADDRESS, " +
				"# top=ADDRESS, # low=ADDRESS, # high=ADDRESS and # keepcost=BYTES. Such lines after blocks begin the next list. For a trace these values come from its " +
				"record of the state of the heap (HINF), if it has one. Flags override them.\n\n" +
				"Without a base, the map begins with the lowest block. Blocks above the top, or more than 4 GiB above the base, have memory of their own; they are " +
				"counted and not drawn. T is the top of the heap, | the address to which it could shrink, < and > are the lowest and the highest address that was " +
				"allocated.\n\n" +
				"With --animate, or under the name rtrace-allocmap-animate, the output is a program for sh that shows the maps of the FILEs one after the other, all " +
				"from the same address on. You see how the memory of a process changes over time.",
			Examples: []cli.Example{
				{Does: "show how fragmented the heap is", Command: "rtrace allocmap rtrace-raw-4711-0"},
				{Does: "compare two traces of one process", Command: "rtrace allocmap rtrace-raw-4711-0 rtrace-raw-4711-1"},
				{Does: "watch how it changes, three maps a second", Command: "rtrace allocmap --animate --pause 0.3 rtrace-raw-4711-* | sh"},
				{Does: "draw a list", Command: "printf '0x0834aa90 22\\n0x0834ab70 15\\n' | rtrace allocmap -s -b 0x08340000 -t 0x08443215 -k 131072"},
			},
		},
		setup: func(f *flags) runFunc {
			var o allocmapOptions
			what := f.group("The heap")
			what.VarP(&o.base, "base", "b", "the heap begins at `ADDRESS`")
			what.VarP(&o.top, "top", "t", "the heap ends at `ADDRESS`")
			what.VarP(&o.low, "low", "l", "the lowest `ADDRESS` that was allocated")
			what.VarP(&o.high, "high", "h", "the highest `ADDRESS` that was allocated")
			what.Uint64VarP(&o.keepCost, "keepcost", "k", 0, "`BYTES` below its end that could be returned to the system")
			how := f.group("The map")
			how.Uint64VarP(&o.page, "page-size", "p", 4, "a character stands for `KB`, 1 to 16")
			how.BoolVarP(&o.single, "single", "s", false, "draw blocks as # (the default for a single trace)")
			how.BoolVar(&o.animate, "animate", false, "write a program for sh that shows one map after the other")
			how.Float64Var(&o.pause, "pause", 0.1, "with --animate: show each map for `SECONDS`")
			how.StringVarP(&o.output, "output", "o", "", "write to the file `OUT`; - is standard output (the default)")
			how.BoolVar(&o.legacy, "legacy", false, "draw and count exactly as the original does, including its errors")
			o.in.add(f.group("Input"))
			return o.run
		},
	}
}

type allocmapOptions struct {
	base, top, low, high address
	keepCost, page       uint64
	single, legacy       bool
	animate              bool
	pause                float64
	output               string
	in                   inputFlags
}

func (o *allocmapOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if o.page < 1 || o.page > 16 {
		return cli.Usagef("--page-size is 1 to 16 KB, not %d", o.page)
	}
	if !(o.pause >= 0 && o.pause <= 3600) { // rejects NaN, too
		return cli.Usagef("--pause takes 0 to 3600 seconds, not %g", o.pause)
	}
	if len(args) == 0 {
		if s.InTerminal {
			return cli.Usagef("no FILE, and standard input is a terminal")
		}
		args = []string{"-"}
	}
	options := allocmap.Options{PageSize: o.page * 1024, Legacy: o.legacy}
	a := allocmapRun{
		allocmapOptions: o, ctx: ctx, streams: s,
		fromTraces: allocmap.New(options, allocmap.Heap{}), listed: allocmap.New(options, allocmap.Heap{}),
	}
	var incomplete error
	for _, name := range args {
		err := a.read(name)
		if !isIncomplete(err) {
			return err
		}
		incomplete = cmp.Or(err, incomplete)
		a.name(name)
	}
	write := a.whole
	if o.animate {
		write = a.frames
	} else {
		options.Single = o.single || a.lists == 0 && len(args) == 1
	}
	input := ""
	for _, name := range args {
		if sameFile(o.output, name) {
			input = name
		}
	}
	var text bytes.Buffer
	if err := write(&text, options); err != nil {
		return err
	}
	out, err := create(s, o.output, input, textContent)
	if err != nil {
		return err
	}
	_, err = text.WriteTo(out)
	return out.finish(errors.Join(err, incomplete))
}

// allocmapRun is one run: the data that it has read.
type allocmapRun struct {
	*allocmapOptions
	ctx        context.Context
	streams    cli.Streams
	fromTraces *allocmap.Map // by traces
	listed     *allocmap.Map // by lists
	lists      int           // inputs that are lists
	runs       [][][2]uint64
	names      []string // of runs
}

// heap returns the known values of the heap. Flags take precedence over traces, and lists
// over flags, as in the original.
func (a *allocmapRun) heap() allocmap.Heap {
	h, listed := a.fromTraces.Heap(), a.listed.Heap()
	for _, f := range []struct {
		flag address
		to   *uint64
	}{{a.base, &h.Base}, {a.top, &h.Top}, {a.low, &h.Low}, {a.high, &h.High}} {
		if f.flag.set {
			*f.to = f.flag.value
		}
	}
	return allocmap.Heap{
		Base: cmp.Or(listed.Base, h.Base), Top: cmp.Or(listed.Top, h.Top),
		Low: cmp.Or(listed.Low, h.Low), High: cmp.Or(listed.High, h.High),
		KeepCost: cmp.Or(listed.KeepCost, a.keepCost, h.KeepCost),
	}
}

// read reads a trace or a list.
func (a *allocmapRun) read(name string) error {
	if name == "-" {
		return a.readFrom(untilDone(a.ctx, a.streams.In), "standard input", false)
	}
	f, err := os.Open(name)
	if err != nil {
		return cli.FileError("opening", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	return a.readFrom(untilDone(a.ctx, f), name, err == nil && info.Mode().IsRegular())
}

// readFrom distinguishes a trace from a list by its beginning. It opens a regular file
// again, with its side file.
func (a *allocmapRun) readFrom(r io.Reader, name string, regular bool) (err error) {
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(len("# keepcost="))
	if len(head) == 0 && err != nil && err != io.EOF {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if isBlockList(head) {
		a.lists++
		return a.readList(buffered, name)
	}
	options := decoder.Options{Strict: a.in.strict, NoSide: a.in.noSide, Warn: warner(a.streams.Err, "allocmap")}
	in := &input{name: name}
	if regular {
		in.Trace, err = decoder.OpenFile(name, options)
	} else if in.Trace, err = decoder.Open(buffered, options); err != nil {
		err = fmt.Errorf("reading %s: %w", name, err)
	}
	if err != nil {
		return err
	}
	everyCall(in.Trace, "allocmap")
	defer func() { err = errors.Join(err, in.Close()) }()
	return in.outcome(a.readTrace(in))
}

// readTrace reads the blocks of memory that are live at the end of a trace.
func (a *allocmapRun) readTrace(src trace.Reader) error {
	var (
		run   [][2]uint64
		state = heapState{memory: map[uint32]bool{0: true}, low: ^uint64(0)}
	)
	seen := &watcher{src: &untilDoneReader{ctx: a.ctx, r: src}, see: state.see}
	err := each(filter.NewLeaks(seen), func(r *trace.Record) {
		if c := &r.Call; r.Kind == trace.KindCall && c.Op == trace.OpAlloc && state.memory[c.Resource] {
			run = append(run, [2]uint64{c.ID, c.Size})
		}
	})
	if !isSyntax(err) {
		return err
	}
	a.fromTraces.Extend(state.result())
	a.runs = append(a.runs, run)
	return err
}

// name gives runs without a name that of their input.
func (a *allocmapRun) name(input string) {
	for len(a.names) < len(a.runs) {
		a.names = append(a.names, printable.Name(filepath.Base(input)))
	}
}
