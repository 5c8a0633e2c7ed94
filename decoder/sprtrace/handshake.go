package sprtrace

import (
	"bytes"
	"fmt"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Handshake is the first packet of a trace, as it is in the file.
type Handshake struct {
	Version wire.Version
	Arch    string
	Endian  byte // wire.LittleEndian or wire.BigEndian
	Pointer byte // bytes of a pointer
}

// parseHandshake parses the handshake that fills b.
func parseHandshake(b []byte) (Handshake, error) {
	var h Handshake
	if len(b) < wire.HandshakeMin {
		return h, fmt.Errorf("handshake of %d bytes: %w", len(b), trace.ErrMalformed)
	}
	n := int(b[wire.HandshakeArchLen])
	if wire.HandshakeMin+n > len(b) {
		return h, fmt.Errorf("architecture name of %d bytes in a handshake of %d: %w", n, len(b), trace.ErrMalformed)
	}
	h.Version = wire.Version(b[wire.HandshakeMajor])<<8 | wire.Version(b[wire.HandshakeMinor])
	h.Arch = string(b[wire.HandshakeArch : wire.HandshakeArch+n])
	h.Endian, h.Pointer = b[wire.HandshakeArch+n], b[wire.HandshakeArch+n+1]
	if m := h.Version.Major(); m != 1 && m != 2 {
		return h, fmt.Errorf("version %d.%d: %w", m, h.Version.Minor(), trace.ErrUnsupported)
	}
	if h.Pointer != 4 && h.Pointer != 8 {
		return h, fmt.Errorf("pointers of %d bytes: %w", h.Pointer, trace.ErrUnsupported)
	}
	if h.Endian > wire.BigEndian {
		return h, fmt.Errorf("byte order %d: %w", h.Endian, trace.ErrUnsupported)
	}
	return h, nil
}

// canonical reports whether b is exactly what a real tool writes. Within a stream only
// that counts as a handshake, because in a trace that has sizes first, its first byte
// could also be the size of a packet.
func canonical(b []byte) bool {
	h, err := parseHandshake(b)
	if err != nil {
		return false
	}
	var room [264]byte
	return len(h.Arch) <= wire.MaxArch &&
		bytes.Equal(wire.AppendHandshake(room[:0], h.Version, h.Arch, h.Endian, h.Pointer), b)
}
