package truth

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
)

// CheckFormat writes the trace at path in another format, reads the result, and compares all
// calls with the projection of the trace to that format. It returns the number of compared
// calls. It keeps nothing in memory or in files.
func CheckFormat(path, format string) (int, error) {
	p, ok := projections[format]
	if !ok {
		return 0, fmt.Errorf("there is no projection for %s", format)
	}
	want, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		return 0, err
	}
	defer closeRead(want)
	r, w := io.Pipe()
	go func() { w.CloseWithError(convert(w, path, format)) }()
	defer closeRead(r)
	got, err := decoder.Open(r, decoder.Options{})
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", format, err)
	}
	defer closeRead(got)
	n, err := p.compare(want, got)
	if err != nil {
		return n, fmt.Errorf("as %s: %w", format, err)
	}
	return n, nil
}

// convert writes the trace at path to w.
func convert(w io.Writer, path, format string) error {
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		return err
	}
	defer closeRead(in)
	out, err := encoder.New(format, w, encoder.Options{})
	if err != nil {
		return err
	}
	if err := trace.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// compare reads both traces to their ends.
func (p *projection) compare(want, got trace.Reader) (int, error) {
	state, there := newProjector(), newProjector()
	var rec trace.Record
	n := 0
	for {
		err := want.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			return n, p.ended(there, got, &rec)
		}
		if err != nil {
			return n, err
		}
		state.note(&rec)
		if rec.Kind != trace.KindCall {
			continue
		}
		for _, f := range p.of(state, &rec) {
			seq := rec.Call.Seq
			var other trace.Record
			if err := there.nextCall(got, &other); err != nil {
				return n, fmt.Errorf("after %d calls: %w", n, err)
			}
			if g := p.read(there, &other); g != f {
				return n, fmt.Errorf("call %d there, %d in the trace:\n got  %+v\n want %+v", other.Call.Seq, seq, g, f)
			}
			n++
		}
	}
}

// ended returns an error if there is a further call.
func (p *projection) ended(there *projector, got trace.Reader, rec *trace.Record) error {
	switch err := there.nextCall(got, rec); {
	case err == nil:
		return fmt.Errorf("a further call: %+v", p.read(there, rec))
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return nil
}

// note remembers what calls refer to.
func (p *projector) note(rec *trace.Record) {
	switch rec.Kind {
	case trace.KindExec:
		clear(p.live)
	case trace.KindResource:
		p.types[rec.Resource.ID] = strings.Clone(rec.Resource.Type)
	}
}

// nextCall reads the next call, and returns io.ErrUnexpectedEOF if there is none.
func (p *projector) nextCall(r trace.Reader, rec *trace.Record) error {
	for {
		err := r.ReadRecord(rec)
		if err == nil {
			p.note(rec)
		}
		switch {
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case rec.Kind == trace.KindCall:
			return nil
		}
	}
}

// closeRead closes what was only read.
func closeRead(c io.Closer) { c.Close() }
