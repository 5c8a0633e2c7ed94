package sptext

import (
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// calls writes a Call with its arguments and its stack. A move is a free and an
// allocation, as in the memory module of sp-rtrace. The stack and the arguments follow
// the allocation.
func (w *Writer) calls(r *trace.Record) {
	c := &r.Call
	if c.Op == trace.OpMove {
		t := c.EntryTime
		if t == 0 {
			t = r.Time
		}
		w.call(c, trace.OpFree, c.OldID, t)
		w.buf = append(w.buf, '\n')
		w.call(c, trace.OpAlloc, c.ID, r.Time)
	} else {
		w.call(c, c.Op, c.ID, r.Time)
	}
	w.args(c.Args)
	w.stack(&c.Stack)
}

func (w *Writer) args(args []trace.Arg) {
	for i := range args {
		w.buf = w.quote(append(w.buf, "\t$"...), args[i].Name, inWord)
		w.buf = w.quote(append(w.buf, " = "...), args[i].Value, inWord)
		w.buf = append(w.buf, '\n')
	}
}

// WriteGrouped writes a call without its stack. Write calls with the same stack one
// after the other, and the stack after the last with WriteStack.
func (w *Writer) WriteGrouped(r *trace.Record) error {
	if w.err != nil {
		return w.err
	}
	w.start(nil)
	w.call(&r.Call, r.Call.Op, r.Call.ID, r.Time)
	w.args(r.Call.Args)
	return w.pass(chunk)
}

// WriteStack ends the group of the calls that were written last. It writes their stack
// and a temporary comment with their sums.
func (w *Writer) WriteStack(s *trace.Stack, calls, bytes uint64) error {
	if w.err != nil {
		return w.err
	}
	b := w.size(append(w.buf, "# allocation summary: "...), calls)
	b = w.size(append(b, " block(s) with total size "...), bytes)
	w.buf = append(b, '\n')
	w.stack(s)
	return w.pass(chunk)
}

// call writes the line of a call.
func (w *Writer) call(c *trace.Call, op trace.Op, id uint64, t int64) {
	w.index++
	index := w.index
	if w.opts.KeepSeq {
		index = c.Seq
	}
	b := append(w.size(w.buf, index), ". "...)
	if c.Context != 0 {
		b = append(appendHex(append(b, '@'), uint64(c.Context)), ' ')
	}
	if t > 0 {
		b = w.time(b, t)
	}
	b = w.function(b, c.Function, c.Resource)
	if op == trace.OpAlloc {
		w.low, w.high = min(w.low, id), max(w.high, id)
		b = w.size(append(b, '('), c.Size)
		b = appendHex(append(b, ") = 0x"...), id)
		w.buf = append(b, '\n')
		return
	}
	b = appendHex(append(b, "(0x"...), id)
	w.buf = append(b, ")\n"...)
}

// stack writes the frames and an empty line after them. The original leaves that line
// out if the trace has no stack for the call, not even an empty one.
func (w *Writer) stack(s *trace.Stack) {
	if w.opts.Legacy && s.End == trace.StackAbsent && len(s.Frames) == 0 {
		return
	}
	if len(s.Names) == len(s.Frames) && len(s.Names) > 0 {
		w.named(s)
		return
	}
	w.buf = append(w.stacks.append(w.buf, s.Frames), '\n')
}

// named writes frames with their texts.
func (w *Writer) named(s *trace.Stack) {
	b := w.buf
	for i, f := range s.Frames {
		b = appendHex(append(b, "\t0x"...), f)
		if s.Names[i] != "" {
			b = w.quote(append(b, ' '), s.Names[i], inLine)
		}
		b = append(b, '\n')
	}
	w.buf = append(b, '\n')
}

// time writes the time of day. A zero time stamp means that there is none, so the
// first millisecond of a day becomes the second.
func (w *Writer) time(b []byte, t int64) []byte {
	ms := uint64(t) / 1e6
	if w.header.Clock != trace.ClockDay {
		ms %= wire.DayMillis
	}
	if ms == 0 && !w.opts.Legacy {
		ms = 1
	}
	if ms == 0 {
		return b
	}
	return w.clock.append(b, ms)
}

// clockText is the text of the time of day that was written last.
type clockText struct {
	ms   uint64
	text []byte
}

// append appends a time of day in milliseconds, which is not 0.
func (c *clockText) append(b []byte, ms uint64) []byte {
	if ms != c.ms {
		c.ms = ms
		t := append(c.text[:0], '[')
		t = append(appendPadded(t, ms/3600000), ':')
		t = append(appendPadded(t, ms/60000%60), ':')
		t = append(appendPadded(t, ms/1000%60), '.')
		f := ms % 1000
		c.text = append(t, '0'+byte(f/100), '0'+byte(f/10%10), '0'+byte(f%10), ']', ' ')
	}
	return append(b, c.text...)
}

// size writes a number that the original holds in 32 bits with a sign.
func (w *Writer) size(b []byte, n uint64) []byte {
	if w.opts.Legacy {
		return appendInt(b, int64(int32(uint32(n))))
	}
	return appendUint(b, n)
}
