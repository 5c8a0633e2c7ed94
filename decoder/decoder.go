// Package decoder opens traces of every known format, compressed or not, together with
// their side files. Each format is one row of a table.
package decoder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"rtrace-bpf/decoder/jsonl"
	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/decoder/sptext"
	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// Options are the options of all formats. A format ignores those of others.
type Options struct {
	// Strict makes an error of what is otherwise skipped and counted.
	Strict bool
	// Legacy reads sp-rtrace, binary and text, as the original tools do.
	Legacy bool
	// Skim leaves out the calls of sp-rtrace's binary format and the packets that
	// belong to them. Reading the rest is then several times as fast. Other formats
	// ignore it.
	Skim bool
	// NoSide ignores side files.
	NoSide bool
	// Warn, if not nil, is called with what is odd but not an error.
	Warn func(error)
}

// Stats counts what a decoder has read so far.
type Stats struct {
	Version string // of the format and dialect, if it has versions
	Skipped uint64 // packets that are unknown or do not parse, and mappings that end before they start
}

// format is one row of the table.
type format struct {
	name  string
	what  string // description for the error about unknown input
	match func(head []byte) bool
	ends  bool // a whole stream has an End
	open  func(r io.Reader, o Options) (trace.Reader, func() Stats, error)
}

// formats are tried in this order. Their names are those of package encoder.
var formats = []format{
	{
		name: "sprtrace", what: "sp-rtrace (first byte 0xF0)",
		match: func(head []byte) bool { return head[0] == 0xf0 },
		open: func(r io.Reader, o Options) (trace.Reader, func() Stats, error) {
			d, err := sprtrace.New(r, sprtrace.Options{Strict: o.Strict, Legacy: o.Legacy, Skim: o.Skim})
			if err != nil {
				return nil, nil, err
			}
			return d, func() Stats {
				s := d.Stats()
				return Stats{Version: s.Dialect, Skipped: s.Unknown + s.Malformed + s.Orphans}
			}, nil
		},
	},
	{
		name: "jsonl", what: "jsonl (first line with \"rtrace-jsonl\")",
		match: func(head []byte) bool {
			line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
			return bytes.HasPrefix(line, []byte("{")) && !bytes.Contains(line, []byte(`"rtrace-side"`))
		},
		open: func(r io.Reader, o Options) (trace.Reader, func() Stats, error) {
			return jsonl.New(r, jsonl.Options{Strict: o.Strict}), func() Stats { return Stats{} }, nil
		},
	},
	{
		name: "mtrc", what: "MTRC of mpatrol",
		match: func(head []byte) bool { return bytes.HasPrefix(head, []byte(mtrcMagic)) },
		ends:  true,
		open: func(r io.Reader, o Options) (trace.Reader, func() Stats, error) {
			d, err := mtrc.NewReader(r, mtrc.Options{Strict: o.Strict})
			if err != nil {
				return nil, nil, err
			}
			return d, func() Stats {
				s := d.Stats()
				return Stats{Version: s.Version, Skipped: s.Unknown}
			}, nil
		},
	},
	{
		name: "nettrace", what: "nettrace of .NET",
		match: nettrace.Match,
		open: func(r io.Reader, o Options) (trace.Reader, func() Stats, error) {
			d, err := nettrace.NewReader(r, nettrace.Options{Strict: o.Strict})
			if err != nil {
				return nil, nil, err
			}
			return d, func() Stats {
				s := d.Stats()
				return Stats{Version: s.Version, Skipped: s.Unknown + s.Undescribed + s.Malformed}
			}, nil
		},
	},
	{
		name: "swap", what: "SWAP data messages",
		match: swap.Match,
		open: func(r io.Reader, o Options) (trace.Reader, func() Stats, error) {
			d, err := swap.NewReader(r, swap.Options{Strict: o.Strict})
			if err != nil {
				return nil, nil, err
			}
			return d, func() Stats {
				s := d.Stats()
				return Stats{Version: s.Version, Skipped: s.Damaged}
			}, nil
		},
	},
	{
		name: "swap-control", what: "packets of SWAP's control channel",
		match: swap.MatchControl,
		open: func(io.Reader, Options) (trace.Reader, func() Stats, error) {
			return nil, nil, fmt.Errorf("packets of SWAP's control channel have no records: %w; 'rtrace dump' prints them", trace.ErrUnsupported)
		},
	},
	{
		name: "text", what: "sp-rtrace text",
		match: func(head []byte) bool { return !bytes.ContainsRune(head, 0) && textLine.Match(head) },
		open: func(r io.Reader, o Options) (trace.Reader, func() Stats, error) {
			warn := func(text string) {
				if o.Warn != nil {
					o.Warn(errors.New(text))
				}
			}
			d, err := sptext.New(r, sptext.Options{Legacy: o.Legacy, Warn: warn})
			return d, func() Stats { return Stats{} }, err
		},
	},
}

// textLine matches a line that only the text of sp-rtrace has: the header or a record.
var textLine = regexp.MustCompile(`(?m)^(` +
	`(version|arch|timestamp|process|pid|filter|backtrace depth|origin)=[^,\n]*, ` +
	`|[0-9]+\. [^\n]*\([^\n]*\)` +
	`|: [^\n]* => 0x[0-9a-f]+-0x[0-9a-f]+` +
	`|<[0-9a-f]+> : [^\n]*\(` +
	`|@ [0-9a-f]+ : ` +
	`|& [^\n]* : )`)

// Trace is an open trace.
type Trace struct {
	trace.Reader
	Format      string   // its name in package encoder
	Compression []string // outermost first: "gzip", "zstd"
	Side        string   // path of the side file that is used, or ""

	// Facts holds, as JSON, what the side file knows about this stream that only
	// readers of its format need; nil if nothing. The package of the format parses it.
	Facts []byte

	stats  func() Stats
	close  []func() error
	facts  factReader // nil if the format needs no facts
	ending *ending
}

// factReader is implemented by the readers of formats whose streams lack facts that
// reading needs and that a side file can hold.
type factReader interface {
	// SetFacts gives the reader the facts, as JSON. It is called before the first
	// ReadRecord.
	SetFacts(facts []byte) error
}

// HeapInfo returns what the side file holds about the state of the heap, or nil. It is
// complete when the whole trace has been read.
func (t *Trace) HeapInfo() *sidefile.HeapInfo {
	if t.ending.side == nil {
		return nil
	}
	return t.ending.side.HeapInfo()
}

// Stats returns what the decoder has counted so far.
func (t *Trace) Stats() Stats {
	s := t.stats()
	s.Skipped += t.ending.skipped
	return s
}

// Close releases the resources of Open and OpenFile.
func (t *Trace) Close() error {
	var all []error
	for _, c := range t.close {
		all = append(all, c())
	}
	t.close = nil
	return errors.Join(all...)
}

// Open detects the format of r and returns a reader of its records. A trace whose
// compressed data is cut yields its whole records and then a *trace.SyntaxError that
// wraps trace.ErrTruncated, as any cut trace does. If a trace lacks the End that its
// header announces or that its format requires, the error wraps trace.ErrUnfinished.
func Open(r io.Reader, o Options) (*Trace, error) {
	in, err := NewInput(r)
	if err != nil {
		return nil, err
	}
	f, err := in.format()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	reader, stats, err := f.open(in, o)
	if err != nil {
		return nil, errors.Join(in.explain(err), in.Close())
	}
	facts, _ := reader.(factReader)
	if len(in.layers) > 0 {
		reader = &checked{reader, in}
	}
	e := &ending{Reader: reader, in: in, format: f.name, always: f.ends}
	return &Trace{
		Reader: e, Format: f.name, Compression: in.Compression,
		stats: stats, close: []func() error{in.Close}, facts: facts, ending: e,
	}, nil
}

// checked is a reader that reports errors in the compression of its input.
type checked struct {
	trace.Reader
	in *Input
}

func (c *checked) ReadRecord(r *trace.Record) error {
	err := c.Reader.ReadRecord(r)
	if err != nil {
		err = c.in.explain(err)
	}
	return err
}

// ErrUnknown is the error for an input of no known format.
var ErrUnknown = errors.New("unknown format")

// ErrEmpty is the error for an input without a single byte. It wraps
// trace.ErrTruncated, although no record was begun.
var ErrEmpty error = emptyError{}

type emptyError struct{}

func (emptyError) Error() string { return "it is empty: there is no trace in it" }

func (emptyError) Unwrap() error { return trace.ErrTruncated }

func unknown(head []byte) error {
	if len(head) == 0 {
		return ErrEmpty
	}
	if bytes.Contains(head, []byte(`"rtrace-side"`)) {
		return fmt.Errorf("%w: this is a side file; name the trace it belongs to", ErrUnknown)
	}
	list := make([]string, len(formats))
	for i, f := range formats {
		list[i] = f.what
	}
	return fmt.Errorf("%w: expected %s, or one of these in gzip or zstd", ErrUnknown, strings.Join(list, ", "))
}
