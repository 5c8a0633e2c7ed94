package plan

import "fmt"

// maxText is the most bytes of a code segment that are looked at.
const maxText = 64 << 20

// segment is a code segment of a file.
type segment struct {
	base  uint64 // address in the file
	bytes []byte
}

// readSegment returns the segment of a file that contains addr. ok is false if there is none.
func readSegment(lib *library, addr uint64) (s segment, ok bool, err error) {
	for _, x := range lib.file.Segments() {
		if addr < x.Addr || addr-x.Addr >= x.FileSize {
			continue
		}
		code, err := lib.file.Code(x.Addr, min(x.FileSize, maxText))
		if err != nil {
			return s, false, fmt.Errorf("read code of %s: %w", lib.mapping.Path, err)
		}
		return segment{x.Addr, code}, true, nil
	}
	return s, false, nil
}

// end returns the address after the segment.
func (s *segment) end() uint64 { return s.base + uint64(len(s.bytes)) }

// has reports whether the segment contains addr.
func (s *segment) has(addr uint64) bool { return addr >= s.base && addr < s.end() }

// between returns the code at the addresses [from, to), as far as the segment has it; nil if
// from is outside.
func (s *segment) between(from, to uint64) []byte {
	if to = min(to, s.end()); from < s.base || from >= to {
		return nil
	}
	return s.bytes[from-s.base : to-s.base]
}

// from returns the code at the n bytes from addr, as far as the segment has it; nil if addr
// is outside.
func (s *segment) from(addr, n uint64) []byte {
	if !s.has(addr) {
		return nil
	}
	rest := s.bytes[addr-s.base:]
	return rest[:min(n, uint64(len(rest)))]
}
