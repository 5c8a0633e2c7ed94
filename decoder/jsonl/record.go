package jsonl

import (
	"fmt"
	"strconv"

	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// formatLine reads the first line of a file.
func (p *parser) formatLine() {
	var (
		format  string
		version uint64
	)
	for p.open('{'); p.more('}'); {
		switch key := p.key(); string(key) {
		case "format":
			p.string(&format)
		case "version":
			p.uint64(&version)
		default:
			p.unknown(key)
		}
	}
	p.end()
	switch {
	case p.err != nil:
	case format != wire.Format:
		p.i = 0
		p.failf("the first line does not say \"format\":%q", wire.Format)
	case version == 0 || version > wire.Version:
		p.i = 0
		p.fail(fmt.Errorf("version %d is %w", version, trace.ErrUnsupported))
	}
}

// unknown deals with a member that this version does not have.
func (p *parser) unknown(key []byte) {
	if p.err == nil && p.strict {
		p.failf("unknown key %s", strconv.Quote(string(key)))
		return
	}
	p.skip()
}

// record reads a line into r.
func (p *parser) record(r *trace.Record) {
	r.Kind = p.kind()
	if p.err != nil {
		return
	}
	zero(r)
	for p.open('{'); p.more('}'); {
		switch key := p.key(); string(key) {
		case "kind":
			if name := p.text(); p.err == nil && kinds[string(name)] != r.Kind {
				p.failf("two kinds")
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
			if !p.field(r, key) {
				p.unknown(key)
			}
		}
	}
	p.end()
	if n, f := len(r.Call.Stack.Names), len(r.Call.Stack.Frames); p.err == nil && r.Kind == trace.KindCall && n != 0 && n != f {
		p.failf("%d frames but %d frame names", f, n)
	}
}

// kind finds the value of "kind", wherever it stands, and steps back.
func (p *parser) kind() trace.Kind {
	start := p.i
	defer func() {
		if p.err == nil {
			p.i = start
		}
	}()
	for p.open('{'); p.more('}'); {
		if string(p.key()) != "kind" {
			p.skip()
			continue
		}
		at := p.i
		name := p.text()
		k, ok := kinds[string(name)]
		if p.err == nil && !ok {
			p.i = at
			p.fail(fmt.Errorf("kind %s is %w", strconv.Quote(string(name)), trace.ErrUnsupported))
		}
		return k
	}
	p.failf("object without a kind")
	return trace.KindNone
}

var (
	kinds     = byName(trace.KindHeader, trace.ParseKind, trace.Kind.String)
	ops       = byName(trace.OpNone, trace.ParseOp, trace.Op.String)
	stackEnds = byName(trace.StackAbsent, trace.ParseStackEnd, trace.StackEnd.String)
)

// byName maps the names of an enumeration to its values, from first on.
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

// zero clears what the record's kind gives meaning to.
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
	}
}
