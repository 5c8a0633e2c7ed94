package sprtrace

import (
	"io"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// bufferSize is the size at which the buffer is written. One record may exceed it:
// handshake, PINF, RESR and twice CALL, ARGS and BTRC.
const (
	bufferSize = 64 << 10
	maxRecord  = 9 * wire.MaxPacket
)

// Writer writes records as packets. It is a trace.Writer.
//
// Every Write on the underlying writer consists of whole packets, and includes all
// packets of a record.
type Writer struct {
	w    io.Writer
	opts Options
	buf  []byte
	err  error // sticky

	order     binio.Order
	header    trace.Header
	started   bool   // the handshake is written
	process   bool   // a PINF is written
	resources uint64 // bit n: RESR n is written
	last      uint32 // latest timestamp
	stats     Stats
}

var _ trace.Writer = (*Writer)(nil)

// New returns a writer to w. It writes nothing before the first record.
func New(w io.Writer, opts Options) (*Writer, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	return &Writer{w: w, opts: opts, buf: make([]byte, 0, bufferSize+maxRecord)}, nil
}

// Stats returns the counters so far, including what is still buffered.
func (e *Writer) Stats() Stats {
	s := e.stats
	s.Bytes += int64(len(e.buf))
	return s
}

// WriteRecord implements trace.Writer. A header that is not the first record begins a
// new trace in the same output, as in concatenated files.
func (e *Writer) WriteRecord(r *trace.Record) error {
	if e.err != nil {
		return e.err
	}
	if r.Kind == trace.KindCall {
		e.writeCall(r)
	} else {
		e.writeOther(r)
	}
	if len(e.buf) >= bufferSize {
		return e.Flush()
	}
	return nil
}

// Flush implements trace.Writer.
func (e *Writer) Flush() error {
	if e.err != nil || len(e.buf) == 0 {
		return e.err
	}
	if e.err = binio.Write(e.w, e.buf); e.err != nil {
		return e.err
	}
	e.stats.Bytes += int64(len(e.buf))
	e.buf = e.buf[:0]
	return nil
}

// Close implements trace.Writer. An output without any record still becomes a valid
// trace.
func (e *Writer) Close() error {
	if e.err != nil {
		return e.err
	}
	e.begin()
	if !e.process {
		e.writeProcess(0, &trace.Process{Depth: -1})
	}
	return e.Flush()
}

// begin writes the handshake unless it is written.
func (e *Writer) begin() {
	if e.started {
		return
	}
	e.started = true
	e.order = binio.Order{Big: e.header.BigEndian, Pointer: 8}
	if e.header.PointerSize == 4 {
		e.order.Pointer = 4
	}
	arch := e.header.Arch
	if arch == "" {
		arch = defaultArch
		if e.order.Pointer == 4 {
			arch = defaultArch32
		}
	}
	if len(arch) > wire.MaxArch {
		arch = arch[:wire.MaxArch]
		e.stats.CutStrings++
	}
	version, endian := wire.V20, byte(wire.LittleEndian)
	if e.opts.Dialect == Document {
		version = wire.V14
	}
	if e.order.Big {
		endian = wire.BigEndian
	}
	e.buf = wire.AppendHandshake(e.buf, version, arch, endian, byte(e.order.Pointer))
	e.stats.Packets++
	if e.header.Ends {
		e.settings(wire.Ends)
	}
}

// settings writes an OCFG, which original readers skip.
func (e *Writer) settings(options string) {
	start := e.packet(wire.OCFG)
	e.text("", maxName)
	e.text(options, maxName)
	e.end(start)
}

// writeHeader starts a trace.
func (e *Writer) writeHeader(h *trace.Header) {
	e.header = *h
	e.started, e.process = false, false
	e.resources, e.last = 0, 0
	e.begin()
}

// packet begins a packet and returns where it starts. end completes it.
func (e *Writer) packet(code uint32) (start int) {
	start = len(e.buf)
	e.buf = e.order.AppendU32(e.buf, code)
	e.buf = e.order.AppendU32(e.buf, 0)
	return start
}

func (e *Writer) end(start int) {
	e.order.PutU32(e.buf[start+4:], uint32(len(e.buf)-start-wire.HeadSize))
	e.stats.Packets++
}

func (e *Writer) u32(v uint32) { e.buf = e.order.AppendU32(e.buf, v) }

func (e *Writer) ptr(v uint64) { e.buf = e.order.AppendPtr(e.buf, v) }

// count appends a number that is an int in original readers.
func (e *Writer) count(v uint64) {
	if v > maxInt {
		v = maxInt
		e.stats.Clamped++
	}
	e.u32(uint32(v))
}

const maxInt = 1<<31 - 1

// room returns how many bytes a string may have, without its length field, if after
// more bytes must fit into the packet that begins at start.
func (e *Writer) room(start, after int) int {
	return wire.MaxPacket - (len(e.buf) - start) - after - 2
}
