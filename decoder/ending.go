package decoder

import (
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// ending is the reader of a Trace. It returns an error at the end of an incomplete
// trace: a stream lacks the End that its header announces or its format requires, or
// the side file is cut or describes more calls than the trace has. It leaves out
// mappings that end before they start, which no format allows.
type ending struct {
	trace.Reader
	in     *Input
	format string
	always bool             // every whole stream of the format has an End
	side   *sidefile.Reader // nil for none
	lost   string           // path of a missing side file that the trace names
	warn   func(error)      // may be nil

	records int
	streams int
	cut     []int  // numbers of the streams that lack their End
	must    bool   // the current stream must have an End
	ended   bool   // the current stream's End was read
	err     error  // sticky
	skipped uint64 // mappings left out
}

func (e *ending) ReadRecord(r *trace.Record) error {
	for {
		err := e.read(r)
		if err != nil || r.Kind != trace.KindMapping && r.Kind != trace.KindUnmapping || r.Mapping.Start <= r.Mapping.End {
			return err
		}
		e.skipped++
	}
}

func (e *ending) read(r *trace.Record) error {
	if e.err != nil {
		return e.err
	}
	if err := e.Reader.ReadRecord(r); err != nil {
		if e.err = err; errors.Is(err, io.EOF) {
			e.next()
			if why := e.verdict(); why != nil {
				e.err = &trace.SyntaxError{Format: e.format, Offset: e.in.read, Err: why}
			} else if e.lost != "" && e.warn != nil {
				e.warn(fmt.Errorf("side file %s is missing: what was lost while recording is not known", e.lost))
			}
		}
		return e.err
	}
	e.records++
	switch r.Kind {
	case trace.KindHeader:
		e.next()
		e.streams++
		e.must, e.ended = e.always || r.Header.Ends, false
	case trace.KindEnd:
		e.ended = true
	}
	return nil
}

// next ends the current stream.
func (e *ending) next() {
	if e.must && !e.ended {
		e.cut = append(e.cut, e.streams)
	}
	e.must = false
}

// verdict returns why the trace is incomplete, or nil.
func (e *ending) verdict() error {
	switch {
	case e.format == "sprtrace" && e.records == e.streams: // every writer writes more
		return &incompleteError{"it has nothing but a header"}
	case e.streams > 1 && len(e.cut) == 1:
		return &incompleteError{fmt.Sprintf("stream %d of %d has no end", e.cut[0], e.streams)}
	case e.streams > 1 && len(e.cut) > 1:
		return &incompleteError{fmt.Sprintf("%d of %d streams have no end", len(e.cut), e.streams)}
	case e.lost != "" && !e.ended:
		return &incompleteError{"its side file " + e.lost + " is missing"}
	case len(e.cut) > 0:
		return &incompleteError{"it has no end"}
	case e.side != nil:
		if err := e.side.Verdict(); err != nil {
			return &incompleteError{err.Error()}
		}
	}
	return nil
}

// incompleteError describes how a trace shows that it is incomplete.
type incompleteError struct{ why string }

func (e *incompleteError) Error() string { return e.why }

func (e *incompleteError) Unwrap() error { return trace.ErrUnfinished }
