package sprtrace

import (
	"bytes"
	"fmt"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Handshake is the first packet of a trace, as it says it is.
type Handshake struct {
	Version wire.Version
	Arch    string
	Endian  byte // 0 little, 1 big
	Pointer byte // bytes of a pointer
}

// Offsets in a handshake; the architecture's n characters follow, then one byte
// of endianness, one of pointer size, and padding.
const (
	hsSize    = 1 // bytes behind this one
	hsMajor   = 2
	hsMinor   = 3
	hsArchLen = 4
	hsArch    = 5
	hsMin     = hsArch + 2
)

// parseHandshake reads the handshake that fills b.
func parseHandshake(b []byte) (Handshake, error) {
	var h Handshake
	if len(b) < hsMin {
		return h, fmt.Errorf("handshake of %d bytes: %w", len(b), trace.ErrMalformed)
	}
	n := int(b[hsArchLen])
	if hsMin+n > len(b) {
		return h, fmt.Errorf("architecture name of %d bytes in a handshake of %d: %w", n, len(b), trace.ErrMalformed)
	}
	h.Version = wire.Version(b[hsMajor])<<8 | wire.Version(b[hsMinor])
	h.Arch = string(b[hsArch : hsArch+n])
	h.Endian, h.Pointer = b[hsArch+n], b[hsArch+n+1]
	if m := h.Version.Major(); m != 1 && m != 2 {
		return h, fmt.Errorf("version %d.%d: %w", m, h.Version.Minor(), trace.ErrUnsupported)
	}
	if h.Pointer != 4 && h.Pointer != 8 {
		return h, fmt.Errorf("pointers of %d bytes: %w", h.Pointer, trace.ErrUnsupported)
	}
	if h.Endian > 1 {
		return h, fmt.Errorf("byte order %d: %w", h.Endian, trace.ErrUnsupported)
	}
	return h, nil
}

// append writes the handshake as real tools do.
func (h *Handshake) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, wire.Magic, 0, h.Version.Major(), h.Version.Minor(), byte(len(h.Arch)))
	dst = append(dst, h.Arch...)
	dst = append(dst, h.Endian, h.Pointer)
	for (len(dst)-start)%4 != 0 {
		dst = append(dst, 0)
	}
	dst[start+hsSize] = byte(len(dst) - start - 2)
	return dst
}

// canonical reports whether b is exactly what a real tool writes. In mid-stream
// only that is taken for a handshake: the first byte alone could as well be the
// size of a packet in a trace that has the size first.
func canonical(b []byte) bool {
	h, err := parseHandshake(b)
	if err != nil {
		return false
	}
	var room [264]byte
	return bytes.Equal(h.append(room[:0]), b)
}
