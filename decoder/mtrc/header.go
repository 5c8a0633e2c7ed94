package mtrc

import (
	"fmt"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// parseHeader parses what follows the magic at the start of b and returns how many
// bytes it takes. It returns errShort if it needs more bytes.
//
// The order word distinguishes the variants: it is 1 in the writer's own size and byte
// order. 64-bit Windows has a version word of 4 bytes after an order word of 8 bytes. A
// record follows it directly and never starts with 0, while the upper half of a version
// word of 8 bytes is 0.
func parseHeader(b []byte) (h wire.Header, n int, err error) {
	if len(b) < 8 {
		return h, 0, errShort
	}
	little := binio.Order{Pointer: 8}
	first, second := little.U32(b), little.U32(b[4:])
	const one = 1 << 24 // a 1 in the other byte order
	switch {
	case first == 1 && second == 0, first == 0 && second == one:
		h.Words, h.Big = 8, first == 0
	case first == 1, first == one:
		h.Words, h.Big = 4, first == one
	default:
		return h, 0, malformed("the word after the magic is 0x%08x%08x, not 1", second, first)
	}
	order := binio.Order{Big: h.Big, Pointer: h.Words}
	if h.Words == 8 && len(b) < 13 {
		return h, 0, errShort
	}
	if h.Words == 8 && !h.Big && b[12] != 0 {
		h.ShortVersion, n = true, 12
		h.Version = uint64(order.U32(b[8:]))
	} else {
		n = 2 * h.Words
		if len(b) < n {
			return h, 0, errShort
		}
		h.Version = order.Ptr(b[h.Words:])
	}
	if h.Version >= wire.VersionEnd {
		return h, n, fmt.Errorf("version %s is %w", wire.FormatVersion(h.Version), trace.ErrUnsupported)
	}
	return h, n, nil
}
