package sprtrace

import (
	"errors"
	"fmt"
	"io"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Reader reads the records of a trace. It is a trace.Reader. Strings in records belong
// to the caller; slices are valid until the next ReadRecord.
type Reader struct {
	w    Walker
	opts Options

	seq     uint64
	pid     int32
	header  bool // a header is to be delivered
	ends    bool // the trace marks its end
	err     error
	isQuick bool // see canQuick
	findings

	names    names
	texts    interner // argument values change often: keep them separate from the names
	frames   []uint64
	args     []trace.Arg
	vals     []Value
	deferred deferred
}

var _ trace.Reader = (*Reader)(nil)

// New reads the handshake and returns a reader of what follows. It returns a
// *trace.SyntaxError if r does not start with a handshake.
func New(r io.Reader, opts Options) (*Reader, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	d := &Reader{w: *newWalker(r, opts), opts: opts}
	if err := d.w.load(); err != nil {
		return nil, err
	}
	if err := d.begin(); err != nil {
		return nil, err
	}
	return d, nil
}

// begin takes the settings of a handshake, the current packet.
func (d *Reader) begin() error {
	if err := d.w.begin(); err != nil {
		return err
	}
	d.stats.Packets++
	d.stats.Handshakes++
	d.seq, d.pid, d.header = 0, 0, true
	d.isQuick = false
	hs := &d.w.hs
	if d.opts.Legacy {
		// The original is built for one architecture and reads only traces with its
		// pointer size. This is the build that would read the trace.
		if build := buildArch[hs.Pointer]; hs.Arch != build {
			d.warn("architecture mismatch: %s (expected %s)", hs.Arch, build)
		}
	}
	if d.w.order.Big != (hs.Endian == wire.BigEndian) {
		d.warn("packets have another byte order than the handshake has")
	}
	if v := hs.Version; d.w.sizeFirst && !v.SizeFirst() {
		d.warn("packets have the size first, which version %d.%d does not", v.Major(), v.Minor())
	}
	return nil
}

var buildArch = map[byte]string{4: "i686", 8: "x86_64"}

// ReadRecord implements trace.Reader. Errors are sticky.
func (d *Reader) ReadRecord(rec *trace.Record) error {
	for d.err == nil {
		if d.header {
			d.header = false
			d.ends = d.announced()
			d.readHeader(rec)
			return nil
		}
		if d.deferred.next < len(d.deferred.packets) {
			p := d.deferred.take()
			if done, err := d.readPacket(rec, p.code, p.data, p.offset); done || err != nil {
				return err
			}
			continue
		}
		if d.isQuick && d.quick(rec) {
			return nil
		}
		if err := d.w.load(); err != nil {
			d.err = d.ending(err)
			break
		}
		if d.w.handshake {
			if err := d.handshake(); err != nil {
				d.err = err
			}
			continue
		}
		offset, code, data := d.w.src.Offset(), d.w.code, d.w.data
		if d.opts.Skim && (code == wire.CALL || code == wire.BTRC || code == wire.ARGS) {
			d.consume()
			d.skim()
			continue
		}
		if code == wire.CALL {
			if done, err := d.readCall(rec); done || err != nil {
				return err
			}
			continue
		}
		if d.stops(code) {
			break
		}
		d.consume()
		if done, err := d.readPacket(rec, code, data, offset); done || err != nil {
			return err
		}
	}
	return d.err
}

// announced consumes the packet directly after the handshake if it announces an End.
func (d *Reader) announced() bool {
	if d.opts.Legacy || d.w.load() != nil || d.w.handshake || d.w.code != wire.OCFG || d.settings(d.w.data) != wire.Ends {
		return false
	}
	d.consume()
	return true
}

// settings returns the options in an OCFG.
func (d *Reader) settings(data []byte) string {
	vals, _, err := d.w.parse(d.vals[:0], d.w.layout(wire.Lookup(wire.OCFG), data), data)
	d.vals = vals
	if err != nil || len(vals) != 2 {
		return ""
	}
	return string(vals[1].Text.Bytes)
}

// consume consumes the current packet and counts it.
func (d *Reader) consume() {
	d.w.consume()
	d.stats.Packets++
}

// ending returns the error with which reading ends.
func (d *Reader) ending(err error) error {
	var syntax *trace.SyntaxError
	if d.opts.Legacy && errors.As(err, &syntax) {
		return io.EOF
	}
	return err
}

// handshake handles a handshake that is not the first packet.
func (d *Reader) handshake() error {
	switch {
	case d.opts.Strict:
		return syntaxError(d.w.src.Offset(), fmt.Errorf("second handshake: %w", trace.ErrMalformed))
	case d.opts.Legacy:
		d.warn("handshake packet received in the middle")
		return io.EOF
	}
	return d.begin()
}

// stops reports whether legacy reading ends at a packet, and adds the warning.
func (d *Reader) stops(code uint32) bool {
	// Modules send NLIB only to the pre-processor; the original's post-processor does
	// not know it.
	if !d.opts.Legacy || code != wire.NLIB && wire.Lookup(code) != nil {
		return false
	}
	d.warn("unknown packet: %x (len=%d)", code, d.w.total)
	d.stats.Unknown++
	d.err = io.EOF
	return true
}

// readPacket makes a record of a packet that is not a call and was consumed. done is
// false if the packet has no record.
func (d *Reader) readPacket(rec *trace.Record, code uint32, data []byte, offset int64) (done bool, err error) {
	switch code {
	case wire.BTRC, wire.ARGS:
		if d.opts.Legacy {
			d.stats.Orphans++
			d.warn("%s packet without a call before it", wire.Letters(code))
			return false, nil
		}
		return d.odd(rec, code, data, offset, &d.stats.Orphans, errOrphan)
	case wire.OCFG, wire.NLIB:
		if d.ends && code == wire.OCFG && d.settings(data) == wire.End {
			d.start(rec, trace.KindEnd)
			return true, nil
		}
		d.readOpaque(rec, code, data)
		return true, nil
	}
	def := wire.Lookup(code)
	if def == nil {
		return d.odd(rec, code, data, offset, &d.stats.Unknown, trace.ErrUnsupported)
	}
	if d.opts.Legacy && code == wire.HINF {
		data = d.overread(data)
	}
	vals, rest, perr := d.w.parse(d.vals[:0], d.w.layout(def, data), data)
	d.vals = vals
	if perr != nil || d.opts.Strict && (len(rest) > 0 || len(data)%4 != 0) {
		return d.odd(rec, code, data, offset, &d.stats.Malformed, trace.ErrMalformed)
	}
	d.setRecord(rec, code, vals)
	return true, nil
}

// errOrphan is the error of strict reading for a packet out of order.
var errOrphan = fmt.Errorf("it does not follow a call: %w", trace.ErrMalformed)

// odd counts a packet that has no meaning here and delivers it as Opaque. It returns an
// error if reading is strict.
func (d *Reader) odd(rec *trace.Record, code uint32, data []byte, offset int64, counter *uint64, why error) (bool, error) {
	*counter++
	if d.opts.Strict {
		d.err = syntaxError(offset, fmt.Errorf("packet %q: %w", wire.Letters(code), why))
		return false, d.err
	}
	d.readOpaque(rec, code, data)
	return true, nil
}

// overread returns the data of a HINF that is too short as the original reads it: it
// continues with the bytes after the packet, which was consumed. After the end of the
// trace its buffer holds zeros, as long as the trace is smaller than the buffer.
func (d *Reader) overread(data []byte) []byte {
	const whole = 2*8 + 10*4
	if d.w.order.Pointer != 8 || len(data) >= whole {
		return data
	}
	var heap [whole]byte
	n := copy(heap[:], data)
	d.w.src.Have(whole - n)
	copy(heap[n:], d.w.src.Bytes())
	return heap[:]
}
