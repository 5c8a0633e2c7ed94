// Package encoder is the table of the formats that traces are written in. A
// new format is one row.
package encoder

import (
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/encoder/mtrc"
	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/encoder/sptext"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// Default is the name of the format that is written unless another is asked for.
const Default = "sprtrace"

// Options are the choices of all formats; each heeds its own.
type Options struct {
	// SprtraceDialect is "wire" (or empty) for what the last real tools
	// write and read, or "document" for the letter of the protocol document.
	SprtraceDialect string
	// BacktraceAll makes sprtrace write the stack of a Move with both of its
	// calls, as it does with every other call that has one.
	BacktraceAll bool
	// KeepOpaque makes sprtrace keep packets of unknown types, which the
	// original tools stop at.
	KeepOpaque bool
	// KeepSeq makes text number the calls by Call.Seq instead of counting
	// them from 1.
	KeepSeq bool
	// Legacy makes text equal to that of the original tool, its errors included.
	Legacy bool
	// MTRCLegacy keeps the numbers of mtrc below 2^31, for the unmodified
	// mptrace.
	MTRCLegacy bool
	// MTRCWords is how many bytes a word of the header of mtrc has, 4 or 8;
	// 0 means the pointer size of the traced machine.
	MTRCWords int
	// SwapDialect is "document" (or empty) for what the protocol document of
	// SWAP says, or "kernel" for what devices sent.
	SwapDialect string
	// SwapTime is "seconds-first" (or empty), or "formula" for times as the
	// newer text of that document computes them.
	SwapTime string
	// SwapNoStacks leaves out the private messages of swap with whole stacks.
	SwapNoStacks bool
	// Nettrace are the choices of nettrace.
	Nettrace nettrace.Options
}

// Format is one row of the table.
type Format struct {
	Name   string
	Suffix string // of file names, with the dot; empty for the default format
	Desc   string // a few words
	Binary bool   // not for terminals
	Whole  bool   // holds all that a trace has: no side file is needed

	open func(w io.Writer, o Options) (trace.Writer, error)
	// positions begins to count what Positions says; nil means one per call.
	positions func() func(*trace.Record) int
}

var formats = []Format{
	{
		Name: "sprtrace", Desc: "binary sp-rtrace, for all its tools", Binary: true, positions: callPackets,
		open: func(w io.Writer, o Options) (trace.Writer, error) {
			dialect, err := sprtraceDialect(o.SprtraceDialect)
			if err != nil {
				return nil, err
			}
			return sprtrace.New(w, sprtrace.Options{Dialect: dialect, KeepOpaque: o.KeepOpaque, BacktraceAll: o.BacktraceAll})
		},
	},
	{
		Name: "text", Suffix: ".txt", Desc: "text of sp-rtrace-postproc", positions: callPackets,
		open: func(w io.Writer, o Options) (trace.Writer, error) {
			return sptext.New(w, sptext.Options{KeepSeq: o.KeepSeq, Legacy: o.Legacy})
		},
	},
	{
		Name: "jsonl", Suffix: ".jsonl", Desc: "one JSON object per record, holds everything", Whole: true,
		open: func(w io.Writer, _ Options) (trace.Writer, error) { return jsonl.New(w), nil },
	},
	{
		Name: "mtrc", Suffix: ".mtrc", Desc: "tracing file of mpatrol, for mptrace", Binary: true, positions: mtrc.Positions,
		open: func(w io.Writer, o Options) (trace.Writer, error) {
			return mtrc.New(w, mtrc.Options{Words: o.MTRCWords, Legacy: o.MTRCLegacy})
		},
	},
	{
		Name: "swap", Suffix: ".swap", Desc: "SWAP data messages of Tizen, for Dynamic Analyzer", Binary: true, positions: swap.Positions,
		open: func(w io.Writer, o Options) (trace.Writer, error) {
			dialect, err := swap.ParseDialect(o.SwapDialect)
			if err != nil {
				return nil, err
			}
			formula := o.SwapTime == "formula"
			if !formula && o.SwapTime != "" && o.SwapTime != "seconds-first" {
				return nil, fmt.Errorf("unknown order of times %q of SWAP (known: seconds-first, formula)", o.SwapTime)
			}
			return swap.New(w, swap.Options{Dialect: dialect, Formula: formula, NoStacks: o.SwapNoStacks})
		},
	},
	{
		Name: "nettrace", Suffix: ".nettrace", Desc: "stream of .NET, for PerfView, holds everything", Binary: true, Whole: true,
		open: func(w io.Writer, o Options) (trace.Writer, error) { return nettrace.New(w, o.Nettrace) },
	},
}

// Formats returns the table, the default format first. The caller owns it.
func Formats() []Format { return append([]Format(nil), formats...) }

// FormatNames returns the names of all formats.
func FormatNames() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return names
}

// Names returns the names of all formats, separated by ", ".
func Names() string { return strings.Join(FormatNames(), ", ") }

// Lookup returns the format with the given name; an empty name is the default.
func Lookup(name string) (Format, error) {
	if name == "" {
		name = Default
	}
	for _, f := range formats {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("unknown format %q (known: %s)", name, Names())
}

// New returns an encoder of the format with the given name.
func New(name string, w io.Writer, o Options) (trace.Writer, error) {
	f, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return f.open(w, o)
}

// CutStacks returns how many stacks w has cut since its format holds fewer
// frames. w comes from New.
func CutStacks(w trace.Writer) uint64 {
	if e, ok := w.(*sprtrace.Writer); ok {
		return e.Stats().CutStacks
	}
	return 0
}

// Remarks says in words what w could not write as it was, one line each. w comes
// from New.
func Remarks(w trace.Writer) []string {
	switch e := w.(type) {
	case *mtrc.Writer:
		return e.Stats().Remarks()
	case *swap.Writer:
		return e.Stats().Remarks()
	case *nettrace.Writer:
		return e.Stats().Remarks()
	}
	return nil
}

// SwapSide returns what a side file must tell of a SWAP stream that w has written:
// the names of functions by their numbers, and when its first message was, in ns since
// 1970. ok is false for other formats. w comes from New.
func SwapSide(w trace.Writer) (apis map[uint32]string, start int64, ok bool) {
	e, ok := w.(*swap.Writer)
	if !ok {
		return nil, 0, false
	}
	return e.APIs(), e.Start(), true
}

// SwapVersion is the version of the protocol that is written.
const SwapVersion = swap.Version

// Suffix returns what the format adds to file names, or "" if it is unknown.
func Suffix(name string) string {
	f, _ := Lookup(name)
	return f.Suffix
}

// Positions returns a function that says how many call positions a record takes
// in the format: how many calls its decoder will deliver for it. A side file
// counts by them. The function must be given every record of a trace, in order.
func Positions(name string) func(*trace.Record) int {
	if f, _ := Lookup(name); f.positions != nil {
		return f.positions()
	}
	return func(r *trace.Record) int {
		if r.Kind == trace.KindCall {
			return 1
		}
		return 0
	}
}

// PositionsOf is Positions for a side file that is written along with w, each
// record first to w. It takes no memory for what w knows already. w comes from
// New with the same name.
func PositionsOf(name string, w trace.Writer) func(*trace.Record) int {
	if e, ok := w.(*mtrc.Writer); ok {
		return func(*trace.Record) int { return e.Positions() }
	}
	return Positions(name)
}

// callPackets is positions for sp-rtrace, binary and text.
func callPackets() func(*trace.Record) int {
	return func(r *trace.Record) int {
		if r.Kind == trace.KindCall {
			return sprtrace.CallPackets(&r.Call)
		}
		return 0
	}
}

func sprtraceDialect(name string) (sprtrace.Dialect, error) {
	switch name {
	case "", "wire":
		return sprtrace.Wire, nil
	case "document":
		return sprtrace.Document, nil
	}
	return 0, fmt.Errorf("unknown dialect %q of sp-rtrace (known: wire, document)", name)
}
