package main

import (
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/heaptrack"
	"rtrace-bpf/trace"
)

// profileSink takes the records of a trace and writes them as a profile.
type profileSink interface {
	Add(r *trace.Record)
	// unknown returns the blocks whose end a gap in the recording may hide.
	unknown() live.Amount
	// finish completes the output, with what is known about the whole trace.
	finish(about *stacks.Profile, shown stacks.Value) error
}

// sumsSink writes sums by stack when the trace is complete.
type sumsSink struct {
	*stacks.Builder
	out   io.Writer
	write func(io.Writer, *stacks.Profile, stacks.Value) error
}

// sumsTo returns a function that opens a profile in a format of sums.
func sumsTo(write func(io.Writer, *stacks.Profile, stacks.Value) error) func(io.Writer, string, stacks.Options) profileSink {
	return func(out io.Writer, _ string, o stacks.Options) profileSink {
		return &sumsSink{stacks.NewBuilder(o), out, write}
	}
}

func (s *sumsSink) unknown() live.Amount { return s.Counter().Total().Unknown }

func (s *sumsSink) finish(about *stacks.Profile, shown stacks.Value) error {
	p := s.Profile()
	p.Name, p.PID, p.Start, p.Duration = about.Name, about.PID, about.Start, about.Duration
	p.Comments, p.Threads = append(p.Comments, about.Comments...), about.Threads
	return s.write(s.out, p, shown)
}

// callsSink writes the calls one by one, for heaptrack.
type callsSink struct {
	*heaptrack.Writer
	packed *gzip.Writer // nil if the output is not compressed
}

// openHeaptrack opens a file for heaptrack. Its readers know from the name whether the file
// is compressed.
func openHeaptrack(out io.Writer, name string, o stacks.Options) profileSink {
	c := &callsSink{}
	if strings.HasSuffix(name, ".gz") {
		c.packed = gzip.NewWriter(out)
		out = c.packed
	}
	c.Writer = heaptrack.NewWriter(out, heaptrack.Options{Locate: o.Locate, Count: o.Count})
	return c
}

func (c *callsSink) unknown() live.Amount { return c.Unknown() }

func (c *callsSink) finish(about *stacks.Profile, _ stacks.Value) error {
	err := c.Close(about.Name)
	if c.packed != nil {
		err = errors.Join(err, c.packed.Close())
	}
	return err
}
