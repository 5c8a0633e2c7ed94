package jsonrecord

import "rtrace-bpf/trace"

func (p *Parser) stack(s *trace.Stack, key []byte) bool {
	switch string(key) {
	case "stack_end":
		s.End = trace.StackEnd(p.Enum(parseStackEnd))
	case "stack_reason":
		p.string(&s.Reason)
	case "frame_pointer":
		p.bool(&s.FramePointer)
	case "stack":
		s.Frames = p.frames()
	case "names":
		s.Names = p.names()
	default:
		return false
	}
	return true
}

// stackOf returns the stack of a record whose kind has one, else nil.
func stackOf(r *trace.Record) *trace.Stack {
	switch r.Kind {
	case trace.KindCall:
		return &r.Call.Stack
	case trace.KindSample:
		return &r.Sample.Stack
	case trace.KindEvent:
		return &r.Event.Stack
	}
	return nil
}

func (p *Parser) function(f *trace.Function, key []byte) bool {
	switch string(key) {
	case "name":
		p.string(&f.Name)
	case "start":
		p.addr(&f.Start)
	case "end":
		p.addr(&f.End)
	case "module":
		p.string(&f.Module)
	default:
		return false
	}
	return true
}

func (p *Parser) sample(s *trace.Sample, key []byte) bool {
	switch string(key) {
	case "name":
		p.string(&s.Name)
	case "weight":
		p.uint64(&s.Weight)
	default:
		return p.stack(&s.Stack, key)
	}
	return true
}

func (p *Parser) event(e *trace.Event, key []byte) bool {
	switch string(key) {
	case "provider":
		p.string(&e.Provider)
	case "name":
		p.string(&e.Name)
	case "id":
		p.uint32(&e.ID)
	case "args":
		e.Args = p.args()
	case "data":
		e.Data = p.bytes()
	default:
		return p.stack(&e.Stack, key)
	}
	return true
}
