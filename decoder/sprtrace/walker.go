package sprtrace

import (
	"fmt"
	"io"
	"math/bits"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Walker returns the packets of a trace one by one, without interpreting them.
type Walker struct {
	src  window.Window
	opts Options

	// What the handshake contains, and what the packets turned out to be.
	hs        Handshake
	order     binio.Order
	sizeFirst bool
	swapped   bool // the letters of packet types are in the other byte order
	callOrder int  // layout of CALL; -1 before the first one
	exactText bool // a string length without its padding was seen

	declared declared

	// The packet at src.pos, if loaded.
	loaded    bool
	handshake bool
	code      uint32 // canonical
	data      []byte
	total     int
	err       error // sticky
}

// Packet is one packet. Raw and Data are valid until the next call of Next.
type Packet struct {
	Offset    int64  // in the input
	Raw       []byte // all of it
	Data      []byte // without type and size; empty for a handshake
	Code      uint32 // type: its letters as a little-endian number
	Name      string // its letters if the type is known, else empty
	Handshake *Handshake
}

// NewWalker returns a walker. It does not read yet.
func NewWalker(r io.Reader, opts Options) (*Walker, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	return newWalker(r, opts), nil
}

func newWalker(r io.Reader, opts Options) *Walker {
	return &Walker{src: window.New(r, window.Size), opts: opts}
}

// Next reads the next packet. The first one is a handshake. It returns io.EOF at the
// end of a whole trace, and a *trace.SyntaxError if the packets end for another reason.
func (w *Walker) Next(p *Packet) error {
	if err := w.load(); err != nil {
		return err
	}
	if !w.handshake && w.code == wire.CALL {
		w.dialect()
	}
	*p = Packet{Offset: w.src.Offset(), Raw: w.src.Bytes()[:w.total], Data: w.data}
	if w.handshake {
		if err := w.begin(); err != nil {
			return err
		}
		hs := w.hs
		p.Handshake = &hs
		// begin may have moved the buffer.
		p.Raw = w.src.Last(len(p.Raw))
		return nil
	}
	p.Code = w.code
	if def := wire.Lookup(w.code); def != nil {
		p.Name = def.Name
	}
	w.consume()
	return nil
}

// consume consumes the loaded packet. Its data stays valid until load.
func (w *Walker) consume() {
	w.src.Skip(w.total)
	w.loaded = false
}

// fail makes err sticky. A *trace.SyntaxError gets the current offset.
func (w *Walker) fail(err error) error {
	w.err = syntaxError(w.src.Offset(), err)
	return w.err
}

// short is called when fewer bytes are left than the packet needs.
func (w *Walker) short() error {
	if w.src.Err() != io.EOF {
		w.err = w.src.Err()
		return w.err
	}
	if len(w.src.Bytes()) == 0 && w.order.Pointer != 0 {
		w.err = io.EOF
		return w.err
	}
	return w.fail(trace.ErrTruncated)
}

// load makes the next packet the current one, unless it is already.
func (w *Walker) load() error {
	if w.loaded {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	if !w.src.Have(wire.HeadSize) && !(w.order.Pointer == 0 && w.src.Have(wire.HandshakeMin)) {
		return w.short()
	}
	if w.src.Bytes()[0] == wire.Magic || w.order.Pointer == 0 {
		if done, err := w.loadHandshake(); done || err != nil {
			return err
		}
	}
	code, size, err := w.head(0)
	if err != nil {
		return w.fail(err)
	}
	total := wire.HeadSize + size
	if !w.src.Have(total) {
		return w.short()
	}
	w.handshake = false
	w.total = total
	w.data = w.src.Bytes()[wire.HeadSize:total]
	w.code = code
	if code != wire.CALL && code != wire.BTRC {
		w.coldCode(code)
	}
	w.loaded = true
	return nil
}

// head returns the type and the data size of the packet that starts rel bytes ahead.
// The caller has made its header available.
func (w *Walker) head(rel int) (code uint32, size int, err error) {
	b := w.src.Bytes()[rel:]
	first, second := w.order.U32(b), w.order.U32(b[4:])
	if !w.sizeFirst {
		code = first
	} else {
		if first < 4 {
			return 0, 0, fmt.Errorf("packet size %d does not cover its type: %w", first, trace.ErrMalformed)
		}
		code, second = second, first-4
	}
	if uint64(second) > uint64(w.opts.MaxPacket) {
		return 0, 0, fmt.Errorf("packet of %d bytes: %w", second, trace.ErrLimit)
	}
	return code, int(second), nil
}

// coldCode brings the code of the current packet into its canonical form and remembers
// registry entries.
func (w *Walker) coldCode(code uint32) {
	def := w.known(code)
	if def == nil {
		if w.swapped {
			w.code = bits.ReverseBytes32(code)
		}
		return
	}
	w.code = def.Code
	if len(w.data) >= 4 {
		w.declared.add(def.Code, w.order.U32(w.data))
	}
}

// known returns the packet that code means in this trace, or nil.
func (w *Walker) known(code uint32) *wire.Packet {
	if def := wire.Lookup(code); def != nil {
		return def
	}
	if w.opts.Legacy {
		return nil
	}
	swapped := bits.ReverseBytes32(code)
	if def := wire.Lookup(swapped); def != nil {
		return def
	}
	if w.hs.Version < wire.V20 {
		if def := wire.LookupBuggy(code); def != nil {
			return def
		}
		return wire.LookupBuggy(swapped)
	}
	return nil
}

// loadHandshake makes a handshake the current packet, if there is one.
func (w *Walker) loadHandshake() (bool, error) {
	first := w.order.Pointer == 0
	if first && w.src.Bytes()[0] != wire.Magic {
		return false, w.fail(fmt.Errorf("no handshake: %w", trace.ErrMalformed))
	}
	total := 2 + int(w.src.Bytes()[wire.HandshakeSize])
	whole := w.src.Have(total)
	if !first {
		if !whole && w.sizeFirst {
			return false, nil // then it is a size
		}
		if whole && !canonical(w.src.Bytes()[:total]) {
			return false, nil
		}
	}
	if !whole {
		return false, w.short()
	}
	w.handshake, w.loaded = true, true
	w.total, w.code, w.data = total, 0, nil
	return true, nil
}

// begin consumes the current packet, a handshake, and prepares for the packets that
// follow.
func (w *Walker) begin() error {
	hs, err := parseHandshake(w.src.Bytes()[:w.total])
	if err != nil {
		w.loaded = false
		return w.fail(err)
	}
	w.hs = hs
	w.order = binio.Order{Big: hs.Endian == wire.BigEndian, Pointer: int(hs.Pointer)}
	w.sizeFirst = hs.Version.SizeFirst()
	w.swapped = false
	w.declared = declared{}
	w.callOrder = -1
	if w.opts.Legacy {
		w.callOrder = 0
	} else {
		w.detectFraming(w.total)
	}
	w.consume()
	return nil
}
