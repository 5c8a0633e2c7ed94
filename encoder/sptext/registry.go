package sptext

import (
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// registry writes every record but Header, Process and Call.
func (w *Writer) registry(r *trace.Record) {
	switch r.Kind {
	case trace.KindAttachment:
		w.buf = w.quote(append(w.buf, "& "...), r.Attachment.Name, inWord)
		w.buf = w.quote(append(w.buf, " : "...), r.Attachment.Path, inWord)
		w.buf = append(w.buf, '\n')
	case trace.KindHeapInfo:
		w.heap(&r.HeapInfo)
	case trace.KindTracerModule:
		m := &r.TracerModule
		w.buf = append(w.buf, wire.ModulePrefix+"["...)
		w.buf = appendHex(w.buf, uint64(m.ID))
		w.buf = w.quote(append(w.buf, "] "...), m.Name, inLine)
		w.buf = appendUint(append(w.buf, " ("...), uint64(m.Major))
		w.buf = appendUint(append(w.buf, '.'), uint64(m.Minor))
		w.buf = append(w.buf, ")\n"...)
	case trace.KindContext:
		w.buf = appendHex(append(w.buf, "@ "...), uint64(r.Context.ID))
		w.buf = w.line(append(w.buf, " : "...), r.Context.Name)
	case trace.KindResource:
		w.declare(&r.Resource)
	case trace.KindMapping:
		w.mapping(": ", &r.Mapping)
	case trace.KindUnmapping:
		w.mapping(wire.UnmappedPrefix, &r.Mapping)
	case trace.KindComment:
		w.comment(r.Comment)
	case trace.KindExec:
		w.buf = w.line(append(w.buf, wire.ExecPrefix...), r.Exec.Name)
	case trace.KindLost:
		w.buf = appendUint(append(w.buf, wire.LostPrefix...), r.Lost.Count)
		w.buf = w.quote(append(w.buf, wire.LostEvents+" ("...), r.Lost.Reason, inLine)
		w.buf = append(w.buf, ")\n"...)
	}
}

// line appends a quoted text and a line feed.
func (w *Writer) line(b []byte, s string) []byte {
	return append(w.quote(b, s, inLine), '\n')
}

// mapping writes the range that a resolver of this format needs: from the load base, if
// that is known, to the end.
func (w *Writer) mapping(prefix string, m *trace.Mapping) {
	from := m.Start
	if m.Base != 0 && m.Base < m.Start {
		from = m.Base
	}
	w.buf = w.quote(append(w.buf, prefix...), m.Path, inWord)
	w.buf = appendHex(append(w.buf, " => 0x"...), from)
	w.buf = appendHex(append(w.buf, "-0x"...), m.End)
	w.buf = append(w.buf, '\n')
}

// declare writes a resource. From the second one on, calls print their type.
func (w *Writer) declare(r *trace.Resource) {
	if !w.opts.Legacy && w.resources.has(r) {
		return
	}
	b := append(w.buf, '<')
	b = appendHex(b, uint64(resourceMask(r.ID)))
	b = w.quote(append(b, "> : "...), r.Type, inAngles)
	b = w.quote(append(b, " ("...), r.Desc, inParens)
	b = append(b, ')')
	if r.RefCount {
		b = append(b, " ["+wire.RefCount+"]"...)
	}
	w.buf = append(b, '\n')

	text := append(w.quote([]byte{'<'}, r.Type, inAngles), '>')
	w.resources.declared = append(w.resources.declared, declared{*r, text})
	w.last.text = w.last.text[:0]
}

// resourceMask returns the id of a resource as it is printed: one bit. The shift is
// that of a 32-bit machine word, whatever the id.
func resourceMask(id uint32) uint32 { return 1 << ((id - 1) & 31) }

// comment writes a free line. A text that could be taken for a record, or is marked as
// temporary, gets the mark of a permanent comment.
func (w *Writer) comment(s string) {
	if w.opts.Legacy {
		w.buf = append(append(w.buf, s...), '\n')
		return
	}
	switch {
	case s == "" || s[0] != '#':
		w.buf = append(w.buf, wire.Kept...)
	case len(s) == 1 || blank(s[1]) == ' ':
		w.buf = append(w.buf, '#')
	}
	for i := range len(s) {
		w.buf = append(w.buf, blank(s[i]))
	}
	w.buf = append(w.buf, '\n')
}

// blank replaces bytes that would end the line of a comment.
func blank(c byte) byte {
	if c == '\n' || c == '\r' || c == 0 {
		return ' '
	}
	return c
}

// SetHeapBounds sets the range of the ids of all allocations in the trace, for a
// HeapInfo that is written before the calls. Without it, the bounds of the calls so far
// are used.
func (w *Writer) SetHeapBounds(low, high uint64) { w.low, w.high = low, high }

func (w *Writer) heap(h *trace.HeapInfo) {
	b := append(w.buf, wire.HeapTitle+"\n"...)
	low := w.low
	if w.header.PointerSize == 4 {
		low = uint64(uint32(low))
	}
	for i, v := range [...]uint64{h.Bottom, h.Top, low, w.high} {
		b = append(append(b, wire.HeapPrefix...), wire.HeapAddresses[i]...)
		b = append(appendHex(append(b, " 0x"...), v), '\n')
	}
	for i, v := range [...]uint64{
		h.Arena, h.OrdBlks, h.SmBlks, h.HBlks, h.HBlkHd,
		h.UsmBlks, h.FsmBlks, h.UordBlks, h.FordBlks, h.KeepCost,
	} {
		b = append(append(b, wire.HeapPrefix...), wire.HeapNumbers[i]...)
		b = append(w.size(append(b, ' '), v), '\n')
	}
	w.buf = b
}

// LeakSum is what one resource leaked: its blocks and their bytes.
type LeakSum struct {
	Type, Desc    string
	Blocks, Bytes uint64
}

// WriteLeaks writes the leak summary, two temporary comments for each resource. It
// belongs at the end of a trace.
func (w *Writer) WriteLeaks(sums []LeakSum) error {
	if w.err != nil {
		return w.err
	}
	w.start(nil)
	for i := range sums {
		s := &sums[i]
		b := w.quote(append(w.buf, "# Resource - "...), s.Type, inLine)
		b = w.quote(append(b, " ("...), s.Desc, inLine)
		b = w.size(append(b, "):\n# "...), s.Blocks)
		b = w.size(append(b, " block(s) leaked with total size of "...), s.Bytes)
		w.buf = append(b, " bytes\n"...)
	}
	return w.pass(chunk)
}

// WriteUnmatched writes the number of frees without an allocation before them.
func (w *Writer) WriteUnmatched(frees uint64) error {
	if w.err != nil {
		return w.err
	}
	w.start(nil)
	w.buf = append(appendUint(append(w.buf, wire.UnmatchedPrefix...), frees), '\n')
	return w.pass(chunk)
}
