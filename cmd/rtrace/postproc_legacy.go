package main

import (
	"io"
	"slices"

	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// placedComments are the comments of a text that are still to be written.
type placedComments []placedComment

// placedComment is a comment of a text and the index of the call before it.
type placedComment struct {
	index int32
	text  string
}

// legacyText is the calls of a text in the order of the original.
func (p *postprocess) legacyText(t *postprocTrace) (trace.Reader, error) {
	front := filter.NewSelect(t, p.chosen)
	front.AllCalls = true
	sorted, comments := sortedText(p.environment(front, false))
	p.comments = comments
	p.env.timestamp = t.text.Timestamp()
	if p.prepare != nil {
		if err := p.prepare(&p.env); err != nil {
			return nil, err
		}
	}
	return front.Over(sorted), nil
}

// sortedText reads a text like the original: comments are placed by the index of the call
// before them, and calls are sorted by time, then by index. That is wrong where the time of
// day wraps.
func sortedText(src trace.Reader) (s *sortedCalls, comments placedComments) {
	s = &sortedCalls{}
	var (
		rec   trace.Record
		index int32
	)
	for {
		if s.err = src.ReadRecord(&rec); s.err != nil {
			break
		}
		switch rec.Kind {
		case trace.KindCall:
			index = int32(uint32(rec.Call.Seq))
			s.add(&rec)
		case trace.KindComment:
			comments = append(comments, placedComment{index, rec.Comment})
		}
	}
	slices.SortStableFunc(s.calls, func(a, b timedCall) int {
		switch x, y := int32(uint32(a.call.Seq)), int32(uint32(b.call.Seq)); {
		case a.time < b.time, a.time == b.time && x < y:
			return -1
		case a.time > b.time, x > y:
			return 1
		}
		return 0
	})
	return s, comments
}

// sortedCalls is a reader of calls in memory. It can be read once.
type sortedCalls struct {
	calls []timedCall
	next  int
	err   error // at the end
}

type timedCall struct {
	time int64
	call trace.Call
}

func (s *sortedCalls) add(r *trace.Record) {
	c := r.Call
	c.Stack.Frames = slices.Clone(c.Stack.Frames)
	c.Stack.Names = slices.Clone(c.Stack.Names)
	c.Args = slices.Clone(c.Args)
	s.calls = append(s.calls, timedCall{r.Time, c})
}

func (s *sortedCalls) ReadRecord(r *trace.Record) error {
	if s.next == len(s.calls) {
		if s.err == nil {
			return io.EOF
		}
		return s.err
	}
	c := &s.calls[s.next]
	s.next++
	r.Kind, r.Time, r.PID, r.TID, r.CPU = trace.KindCall, c.time, 0, 0, 0
	r.Call = c.call
	return nil
}

// write writes the comments that come before a call, or all remaining ones if next is nil. A
// comment that must wait delays those after it.
func (p *placedComments) write(w trace.Writer, next *trace.Record) error {
	if len(*p) == 0 || next != nil && next.Kind != trace.KindCall {
		return nil
	}
	for len(*p) > 0 {
		c := (*p)[0]
		if next != nil && c.index >= int32(uint32(next.Call.Seq)) {
			return nil
		}
		if err := w.WriteRecord(&trace.Record{Kind: trace.KindComment, Comment: c.text}); err != nil {
			return err
		}
		*p = (*p)[1:]
	}
	return nil
}
