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

// ehHeader is .eh_frame_hdr, the search table of .eh_frame, to which a segment points
// (LSB 5.0, 10.6.2). Through it .eh_frame is found in a file without section headers.
type ehHeader struct {
	img  *image
	at   uint64 // where the header is loaded
	head []byte
	addr uint64 // where .eh_frame is loaded
	off  uint64 // where .eh_frame is in the file
	rest uint64 // bytes of the segment from off on
}

// readEHHeader reads the header. It returns nil if the file has none, or with an error.
func readEHHeader(img *image) (*ehHeader, error) {
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ != elf.PT_GNU_EH_FRAME {
			continue
		}
		head, err := img.read(s.offset, s.filesz, maxFrames, ".eh_frame_hdr")
		if err != nil {
			return nil, err
		}
		if len(head) < 8 || head[0] != 1 || head[1] != encPCRel4 {
			return nil, fail(s.offset, trace.ErrUnsupported, ".eh_frame_hdr")
		}
		h := &ehHeader{img: img, at: s.addr, head: head}
		h.addr = s.addr + 4 + h.signed4(head[4:])
		var ok bool
		if h.off, h.rest, ok = img.offset(h.addr); !ok || h.rest == 0 {
			return nil, fail(s.offset, trace.ErrMalformed, "address in .eh_frame_hdr")
		}
		return h, nil
	}
	return nil, nil
}

// frames reads .eh_frame. The result is empty if nothing is in it.
func (h *ehHeader) frames() (Frames, error) {
	n, err := h.length()
	if err != nil || n == 0 {
		return Frames{}, err
	}
	data, err := h.img.read(h.off, n, maxFrames, ".eh_frame")
	return Frames{Data: data, Addr: h.addr, EH: true}, err
}

// length returns the length of .eh_frame in bytes, which the file does not give. The
// section ends where the last entry of the table ends or, without a table, at the first
// terminator.
func (h *ehHeader) length() (uint64, error) {
	if len(h.head) < 12 || h.head[2] != encUdata4 || h.head[3] != encHdrRel4 {
		return h.untilTerminator()
	}
	table := h.head[12:]
	count := min(uint64(h.img.order.Uint32(h.head[8:])), uint64(len(table))/8)
	if count == 0 {
		return h.untilTerminator()
	}
	last := uint64(0) // of .eh_frame, in bytes from its start
	for ; count > 0; count-- {
		if at := h.at + h.signed4(table[4:]) - h.addr; at < h.rest {
			last = max(last, at)
		}
		table = table[8:]
	}
	n, err := h.entryEnd(last)
	return last + n, err
}

// entryEnd returns the length in bytes of the entry at a distance from the start of
// .eh_frame.
func (h *ehHeader) entryEnd(at uint64) (uint64, error) {
	b, err := h.img.read(h.off+at, 4, 4, "entry of .eh_frame")
	if err != nil {
		return 0, err
	}
	n := uint64(h.img.order.Uint32(b)) + 4
	if n > h.rest-at {
		return h.rest - at, nil // a 64-bit length or a malformed one: cfi decides
	}
	return n, nil
}

// untilTerminator returns the length of .eh_frame if it ends with an entry of length zero,
// or if the segment ends. Other data may follow.
func (h *ehHeader) untilTerminator() (uint64, error) {
	data, err := h.img.read(h.off, h.rest, maxFrames, ".eh_frame")
	if err != nil {
		return 0, err
	}
	at := uint64(0)
	for at+4 <= h.rest {
		n := uint64(h.img.order.Uint32(data[at:]))
		if n == 0 || n > h.rest-at-4 {
			break
		}
		at += 4 + n
	}
	return at, nil
}

// signed4 reads a signed number of four bytes.
func (h *ehHeader) signed4(b []byte) uint64 { return uint64(int64(int32(h.img.order.Uint32(b)))) }
