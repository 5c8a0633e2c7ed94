// Package encoder is the table of the formats that traces are written in. A
// new format is one row.
package encoder

import (
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/encoder/sptext"
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
}

// Format is one row of the table.
type Format struct {
	Name   string
	Suffix string // of file names, with the dot; empty for the default format
	Desc   string // a few words
	Binary bool   // not for terminals

	open func(w io.Writer, o Options) (trace.Writer, error)
	// positions is how many calls a reader delivers for one; nil means one.
	positions func(*trace.Call) int
}

var formats = []Format{
	{
		Name: "sprtrace", Desc: "binary sp-rtrace, for all its tools", Binary: true, positions: sprtrace.CallPackets,
		open: func(w io.Writer, o Options) (trace.Writer, error) {
			dialect, err := sprtraceDialect(o.SprtraceDialect)
			if err != nil {
				return nil, err
			}
			return sprtrace.New(w, sprtrace.Options{Dialect: dialect, KeepOpaque: o.KeepOpaque, BacktraceAll: o.BacktraceAll})
		},
	},
	{
		Name: "text", Suffix: ".txt", Desc: "text of sp-rtrace-postproc", positions: sprtrace.CallPackets,
		open: func(w io.Writer, o Options) (trace.Writer, error) {
			return sptext.New(w, sptext.Options{KeepSeq: o.KeepSeq, Legacy: o.Legacy})
		},
	},
	{
		Name: "jsonl", Suffix: ".jsonl", Desc: "one JSON object per record, holds everything",
		open: func(w io.Writer, _ Options) (trace.Writer, error) { return jsonl.New(w), nil },
	},
}

// Formats returns the table, the default format first. The caller owns it.
func Formats() []Format { return append([]Format(nil), formats...) }

// Names returns the names of all formats, separated by ", ".
func Names() string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

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

// Suffix returns what the format adds to file names, or "" if it is unknown.
func Suffix(name string) string {
	f, _ := Lookup(name)
	return f.Suffix
}

// Positions returns how many call positions a record takes in the format: how
// many calls its decoder will deliver for it. A side file counts by them.
func Positions(name string) func(*trace.Record) int {
	f, _ := Lookup(name)
	return func(r *trace.Record) int {
		switch {
		case r.Kind != trace.KindCall:
			return 0
		case f.positions == nil:
			return 1
		}
		return f.positions(&r.Call)
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
