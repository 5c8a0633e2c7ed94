package jsonrecord

import (
	"fmt"
	"strconv"

	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// Record parses the object in the line into r, or sets the cursor's error. If other is
// not nil, it is called with the key of each member that a record does not have; it
// reads the value and returns true, or returns false. What r refers to is valid until
// the next call, except strings.
func (p *Parser) Record(r *trace.Record, other func(key []byte) bool) {
	r.Kind = p.kind()
	if p.Err() != nil {
		return
	}
	zero(r)
	for p.Open('{'); p.More('}'); {
		switch key := p.Key(); string(key) {
		case "kind":
			if name := p.Text(); p.Err() == nil && kinds[string(name)] != r.Kind {
				p.failf(p.Offset(), "two kinds")
			}
		case "time":
			p.int64(&r.Time)
		case "pid":
			p.int32(&r.PID)
		case "tid":
			p.int32(&r.TID)
		case "cpu":
			p.int32(&r.CPU)
		default:
			if !p.field(r, key) && (other == nil || !other(key)) {
				p.Unknown(key)
			}
		}
	}
	p.End()
	if s := stackOf(r); s != nil && p.Err() == nil && len(s.Names) != 0 && len(s.Names) != len(s.Frames) {
		p.failf(p.Offset(), "%d frames but %d frame names", len(s.Frames), len(s.Names))
	}
}

// kind returns the value of "kind", wherever it is in the object, and steps back to the
// start.
func (p *Parser) kind() trace.Kind {
	start := p.Offset()
	defer func() { p.Seek(start) }()
	for p.Open('{'); p.More('}'); {
		if string(p.Key()) != "kind" {
			p.Skip()
			continue
		}
		at := p.Offset()
		name := p.Text()
		k, ok := kinds[string(name)]
		if p.Err() == nil && !ok {
			p.Fail(at, fmt.Errorf("kind %s is %w", strconv.Quote(string(name)), trace.ErrUnsupported))
		}
		return k
	}
	p.failf(p.Offset(), "object without a kind")
	return trace.KindNone
}

var (
	kinds     = byName(trace.KindHeader, trace.ParseKind, trace.Kind.String)
	ops       = byName(trace.OpNone, trace.ParseOp, trace.Op.String)
	stackEnds = byName(trace.StackAbsent, trace.ParseStackEnd, trace.StackEnd.String)
)

// byName maps the names of an enumeration to its values, starting with first.
func byName[E ~uint8](first E, parse func(string) (E, bool), name func(E) string) map[string]E {
	values := make(map[string]E)
	for e := first; ; e++ {
		if _, ok := parse(name(e)); !ok {
			return values
		}
		values[name(e)] = e
	}
}

func parseOp(s []byte) (uint8, bool) {
	v, ok := ops[string(s)]
	return uint8(v), ok
}

func parseStackEnd(s []byte) (uint8, bool) {
	v, ok := stackEnds[string(s)]
	return uint8(v), ok
}

func parseClock(s []byte) (uint8, bool) {
	for i, name := range wire.Clocks {
		if name == string(s) {
			return uint8(i), true
		}
	}
	return 0, false
}

// zero clears the fields of r that its kind uses.
func zero(r *trace.Record) {
	r.Time, r.PID, r.TID, r.CPU = 0, 0, 0, 0
	switch r.Kind {
	case trace.KindHeader:
		r.Header = trace.Header{}
	case trace.KindProcess:
		r.Process = trace.Process{}
	case trace.KindThread:
		r.Thread = trace.Thread{}
	case trace.KindTracerModule:
		r.TracerModule = trace.TracerModule{}
	case trace.KindResource:
		r.Resource = trace.Resource{}
	case trace.KindContext:
		r.Context = trace.Context{}
	case trace.KindModule:
		r.Module = trace.Module{}
	case trace.KindMapping, trace.KindUnmapping:
		r.Mapping = trace.Mapping{}
	case trace.KindCall:
		r.Call = trace.Call{}
	case trace.KindHeapGrow:
		r.HeapGrow = trace.HeapGrow{}
	case trace.KindHeapInfo:
		r.HeapInfo = trace.HeapInfo{}
	case trace.KindAttachment:
		r.Attachment = trace.Attachment{}
	case trace.KindComment:
		r.Comment = ""
	case trace.KindExec:
		r.Exec = trace.Exec{}
	case trace.KindExit:
		r.Exit = trace.Exit{}
	case trace.KindLost:
		r.Lost = trace.Lost{}
	case trace.KindOpaque:
		r.Opaque = trace.Opaque{}
	case trace.KindFunction:
		r.Function = trace.Function{}
	case trace.KindSample:
		r.Sample = trace.Sample{}
	case trace.KindEvent:
		r.Event = trace.Event{}
	case trace.KindRSS:
		r.RSS = trace.RSS{}
	case trace.KindWindow:
		r.Window = trace.Window{}
	case trace.KindCost:
		r.Cost = trace.Cost{}
	}
}
