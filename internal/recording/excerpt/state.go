package excerpt

import (
	"slices"

	"rtrace-bpf/trace"
)

// state is what a trace that begins now has to know of what was before.
type state struct {
	header trace.Record
	known  []trace.Record // in the order of their times
}

// observe takes a record of the recording that is not a call.
func (s *state) observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		s.header = *r
		return
	case trace.KindContext:
		if r.Context.ID == 0 { // a mark
			return
		}
	case trace.KindThread:
		s.drop(func(x *trace.Record) bool { return x.Kind == r.Kind && x.TID == r.TID })
	case trace.KindExit:
		s.drop(func(x *trace.Record) bool { return x.Kind == trace.KindThread && x.TID == r.TID })
		return
	case trace.KindUnmapping:
		from, to := r.Mapping.Start, r.Mapping.End
		s.drop(func(x *trace.Record) bool {
			return x.Kind == trace.KindMapping && x.Mapping.Start >= from && x.Mapping.End <= to
		})
		if !slices.ContainsFunc(s.known, func(x trace.Record) bool {
			return x.Kind == trace.KindMapping && x.Mapping.Start < to && x.Mapping.End > from
		}) {
			return // nothing is left of it
		}
	case trace.KindExec:
		s.drop(func(x *trace.Record) bool {
			return x.Kind == trace.KindMapping || x.Kind == trace.KindUnmapping || x.Kind == trace.KindFunction
		})
		for i := range s.known {
			if p := &s.known[i].Process; s.known[i].Kind == trace.KindProcess && r.Exec.Name != "" {
				p.Name, p.Path = r.Exec.Name, ""
			}
		}
		return
	case trace.KindProcess, trace.KindTracerModule, trace.KindResource, trace.KindModule, trace.KindMapping, trace.KindFunction:
	default:
		return
	}
	own := *r
	own.Call = trace.Call{}
	s.known = append(s.known, own)
}

func (s *state) drop(which func(*trace.Record) bool) {
	s.known = slices.DeleteFunc(s.known, func(x trace.Record) bool { return which(&x) })
}

// replay writes what is known, as of a time.
func (s *state) replay(at int64, write func(*trace.Record) error) error {
	h := s.header
	if h.Kind == trace.KindNone {
		return nil // nothing is known before the first record
	}
	h.Time = at
	if err := write(&h); err != nil {
		return err
	}
	for i := range s.known {
		r := s.known[i]
		r.Time = at
		if r.Kind == trace.KindProcess && h.Header.WallTime != 0 {
			r.Process.WallTime = h.Header.WallTime + at - h.Header.ClockTime
		}
		if err := write(&r); err != nil {
			return err
		}
	}
	return nil
}
