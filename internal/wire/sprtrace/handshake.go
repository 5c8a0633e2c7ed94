package sprtrace

// Offsets in a handshake. The n characters of the architecture are followed by
// one byte of byte order, one of pointer size, and padding.
const (
	HandshakeSize    = 1 // number of bytes after this one
	HandshakeMajor   = 2
	HandshakeMinor   = 3
	HandshakeArchLen = 4
	HandshakeArch    = 5
	HandshakeMin     = HandshakeArch + 2 // length without name and padding
)

// MaxArch is the length of the longest architecture name for which the size of
// the handshake fits into a byte.
const MaxArch = 248

// Values of the handshake's byte order.
const (
	LittleEndian = 0
	BigEndian    = 1
)

// AppendHandshake appends a handshake with zero padding to a multiple of 4.
// arch must have at most MaxArch bytes.
func AppendHandshake(dst []byte, v Version, arch string, endian, pointer byte) []byte {
	start := len(dst)
	dst = append(dst, Magic, 0, v.Major(), v.Minor(), byte(len(arch)))
	dst = append(dst, arch...)
	dst = append(dst, endian, pointer)
	for (len(dst)-start)%4 != 0 {
		dst = append(dst, 0)
	}
	dst[start+HandshakeSize] = byte(len(dst) - start - 2)
	return dst
}

// TextSize returns the number of bytes of a string with that length field,
// whether or not the length includes the padding.
func TextSize(length uint16) int {
	return (2 + int(length) + 3) &^ 3
}
