// Package decoder opens traces of any format that is known, compressed or not,
// with what their side files add. A new format is one row of a table.
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

// Options are the choices of all formats; each heeds its own.
type Options struct {
	// Strict makes an error of what is skipped and counted otherwise.
	Strict bool
	// Legacy reads sp-rtrace, binary and text, as its original tools do.
	Legacy bool
	// Skim leaves out the calls of sp-rtrace's binary format and what belongs to
	// them, which makes reading the rest several times as fast. Other formats have
	// their calls all the same.
	Skim bool
	// NoSide leaves side files alone.
	NoSide bool
	// Warn, if not nil, is told what is odd but no error.
	Warn func(error)
}

// Stats are what a decoder counted so far.
type Stats struct {
	Version string // of the format and dialect, if it has versions
	Skipped uint64 // packets that were unknown or did not parse, and mappings that end before they start
}

// format is one row of the table.
type format struct {
	name  string
	what  string // in words, for the error about unknown input
	match func(head []byte) bool
	ends  bool // a stream that is whole has an End
	open  func(r io.Reader, o Options) (trace.Reader, func() Stats, error)
}

// formats are tried in their order; the names are those of package encoder.
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

// textLine matches a line that only sp-rtrace text has: the header or a record.
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

	// Facts is what the side file holds about this stream for the readers of its
	// format alone, as JSON, or nil. The package of the format parses it.
	Facts []byte

	stats  func() Stats
	close  []func() error
	facts  factReader // nil if the format needs no facts
	ending *ending
}

// factReader is the reader of a format whose streams leave out facts that their
// readers need and that a side file can hold.
type factReader interface {
	// SetFacts takes the facts as JSON. It is called before the first ReadRecord.
	SetFacts(facts []byte) error
}

// HeapInfo returns what the side file says of the state of the heap, nil for nothing. It
// is known when the trace is read.
func (t *Trace) HeapInfo() *sidefile.HeapInfo {
	if t.ending.side == nil {
		return nil
	}
	return t.ending.side.HeapInfo()
}

// Stats returns what the decoder counted so far.
func (t *Trace) Stats() Stats {
	s := t.stats()
	s.Skipped += t.ending.skipped
	return s
}

// Close releases what Open and OpenFile opened.
func (t *Trace) Close() error {
	var all []error
	for _, c := range t.close {
		all = append(all, c())
	}
	t.close = nil
	return errors.Join(all...)
}

// Open finds out the format of r and returns a reader of its records. A trace
// that is cut inside its compression is cut as any other: its whole records
// are read, then a *trace.SyntaxError that wraps trace.ErrTruncated. So does one
// that ends without the End that it announces or that its format has always; then
// the error wraps trace.ErrUnfinished.
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

// checked is a reader that says what was wrong with the compression of its input.
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

// ErrUnknown says that the format of an input was not recognised.
var ErrUnknown = errors.New("unknown format")

// ErrEmpty says that an input has not a single byte. It wraps trace.ErrTruncated,
// though no record was begun.
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
