package symbol

import (
	"debug/elf"

	"rtrace-bpf/trace"
)

// Encodings of pointers in .eh_frame_hdr (LSB 5.0, 10.5.1) that linkers use.
const (
	encUdata4  = 0x03
	encPCRel4  = 0x1b // signed, from the place of the pointer
	encHdrRel4 = 0x3b // signed, from the start of the header
)

// findFrames finds .eh_frame through its search table, .eh_frame_hdr, to which a segment
// points (LSB 5.0, 10.6.2). The file does not give the section's length. The section ends
// where the last entry of the table ends or, without a table, at the first terminator. n is
// 0 if the file has no .eh_frame_hdr.
func (img *image) findFrames() (addr, off, n uint64, err error) {
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ != elf.PT_GNU_EH_FRAME {
			continue
		}
		head, err := img.read(s.offset, s.filesz, maxFrames, ".eh_frame_hdr")
		if err != nil {
			return 0, 0, 0, err
		}
		if len(head) < 8 || head[0] != 1 || head[1] != encPCRel4 {
			return 0, 0, 0, fail(s.offset, trace.ErrUnsupported, ".eh_frame_hdr")
		}
		addr = s.addr + 4 + img.signed4(head[4:])
		off, rest, ok := img.offset(addr)
		if !ok || rest == 0 {
			return 0, 0, 0, fail(s.offset, trace.ErrMalformed, "address in .eh_frame_hdr")
		}
		if len(head) < 12 || head[2] != encUdata4 || head[3] != encHdrRel4 {
			return img.untilTerminator(addr, off, rest)
		}
		table := head[12:]
		count := min(uint64(img.order.Uint32(head[8:])), uint64(len(table))/8)
		if count == 0 {
			return img.untilTerminator(addr, off, rest)
		}
		last := addr
		for ; count > 0; count-- {
			if at := s.addr + img.signed4(table[4:]); at-addr < rest {
				last = max(last, at)
			}
			table = table[8:]
		}
		n, err = img.entryEnd(off+(last-addr), rest-(last-addr))
		return addr, off, (last - addr) + n, err
	}
	return 0, 0, 0, nil
}

// entryEnd returns the length of the entry of .eh_frame at off, in bytes.
func (img *image) entryEnd(off, rest uint64) (uint64, error) {
	b, err := img.read(off, 4, 4, "entry of .eh_frame")
	if err != nil {
		return 0, err
	}
	n := uint64(img.order.Uint32(b)) + 4
	if n > rest {
		return rest, nil // a 64-bit length or a malformed one: cfi decides
	}
	return n, nil
}

// untilTerminator returns the length of .eh_frame, at most rest bytes, if it ends with an
// entry of length zero. Other data may follow.
func (img *image) untilTerminator(addr, off, rest uint64) (uint64, uint64, uint64, error) {
	data, err := img.read(off, rest, maxFrames, ".eh_frame")
	if err != nil {
		return 0, 0, 0, err
	}
	at := uint64(0)
	for at+4 <= rest {
		n := uint64(img.order.Uint32(data[at:]))
		if n == 0 || n > rest-at-4 {
			break
		}
		at += 4 + n
	}
	return addr, off, at, nil
}

// signed4 reads a signed number of four bytes.
func (img *image) signed4(b []byte) uint64 { return uint64(int64(int32(img.order.Uint32(b)))) }
