// Package encoder is the table of the formats in which traces are written. Each format
// is one row.
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

// Default is the name of the default format.
const Default = "sprtrace"

// Options are the options of all formats. A format ignores those of others.
type Options struct {
	// SprtraceDialect is "wire" (or empty) for what the last real tools write and read,
	// or "document" for what the protocol document specifies.
	SprtraceDialect string
	// BacktraceAll makes sprtrace write the stack of a move with both of its calls, as
	// it does with every other call that has a stack.
	BacktraceAll bool
	// KeepOpaque makes sprtrace keep packets of unknown types, at which the original
	// tools stop.
	KeepOpaque bool
	// KeepSeq makes text number the calls with Call.Seq instead of counting them from
	// 1.
	KeepSeq bool
	// Legacy makes text equal to that of the original tool, including its errors.
	Legacy bool
	// MTRCLegacy keeps all numbers in mtrc below 2^31, for the unmodified mptrace.
	MTRCLegacy bool
	// MTRCWords is the size in bytes of a word in the header of mtrc, 4 or 8; 0 means
	// the pointer size of the traced machine.
	MTRCWords int
	// SwapDialect is "document" (or empty) for what the protocol document of SWAP
	// specifies, or "kernel" for what devices sent.
	SwapDialect string
	// SwapTime is "seconds-first" (or empty), or "formula" for times as the newer text
	// of that document computes them.
	SwapTime string
	// SwapNoStacks leaves out the private messages of swap with whole stacks.
	SwapNoStacks bool
	// Nettrace are the options of nettrace.
	Nettrace nettrace.Options
}

// Format is one row of the table.
type Format struct {
	Name   string
	Suffix string // of file names, with the dot; empty for the default format
	Desc   string // a few words
	Binary bool   // not for terminals
	Whole  bool   // holds everything that a trace has: it needs no side file

	open func(w io.Writer, o Options) (trace.Writer, error)
	// positions returns a new function for Positions; nil means one position for each
	// call.
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

// Formats returns the table, with the default format first. The caller owns it.
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

// Lookup returns the format with the given name. An empty name means the default
// format.
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

// CutStacks returns how many stacks w has cut because its format holds fewer frames.
// New returned w.
func CutStacks(w trace.Writer) uint64 {
	if e, ok := w.(*sprtrace.Writer); ok {
		return e.Stats().CutStacks
	}
	return 0
}

// Remarks describes what w could not write unchanged, one line each. New returned w.
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

// SwapSide returns what the side file of a SWAP stream that w has written must hold:
// the names of functions by their numbers, and the time of the first message, in ns
// since 1970. ok is false for other formats. New returned w.
func SwapSide(w trace.Writer) (apis map[uint32]string, start int64, ok bool) {
	e, ok := w.(*swap.Writer)
	if !ok {
		return nil, 0, false
	}
	return e.APIs(), e.Start(), true
}

// SwapVersion is the version of the SWAP protocol that New writes.
const SwapVersion = swap.Version

// Suffix returns the suffix of file names of the format, or "" if the format has none
// or is unknown.
func Suffix(name string) string {
	f, _ := Lookup(name)
	return f.Suffix
}

// Positions returns a function that reports how many call positions a record takes in
// the format: how many calls the decoder will deliver for it. A side file counts in
// positions. Call the function with every record of a trace, in order.
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

// PositionsOf is Positions for a side file that is written along with w, each record
// first to w. It uses no memory for what w already knows. New returned w for the same
// name.
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
