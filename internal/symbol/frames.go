package symbol

import "debug/elf"

// maxFrames is the most bytes of call frame information that are read. The largest programs
// have about fifty megabytes.
const maxFrames = 1 << 28

// Frames is the call frame information of a file, as it is stored. Package
// internal/unwind/cfi decodes it.
type Frames struct {
	Data []byte // the caller's; empty if there is none
	Addr uint64 // where it is loaded, as linked; 0 for .debug_frame
	EH   bool   // .eh_frame, else .debug_frame

	// Text and Got are the addresses of .text and .got, to which some compilers' addresses
	// are relative; 0 if unknown.
	Text, Got uint64
}

// EHFrame returns .eh_frame, which the dynamic loader maps together with the code. In a
// file without section headers it is found through .eh_frame_hdr.
func (f *File) EHFrame() (Frames, error) {
	img := f.image
	if s := img.named(".eh_frame"); s != nil && s.stored() {
		return s.frames(true)
	}
	head, err := readEHHeader(img)
	if head == nil {
		return Frames{}, err
	}
	return head.frames()
}

// DebugFrame returns .debug_frame, which debuggers use and no program maps. It comes from
// the file itself or else from its separate debug file.
func (f *File) DebugFrame() (Frames, error) {
	if s := f.named(".debug_frame"); s != nil && s.typ != elf.SHT_NOBITS {
		return s.frames(false)
	}
	debug := f.openDebug(false)
	if debug == nil {
		return Frames{}, nil
	}
	defer debug.closer.Close()
	if s := debug.named(".debug_frame"); s != nil && s.typ != elf.SHT_NOBITS {
		return s.frames(false)
	}
	return Frames{}, nil
}

// frames reads a section of call frame information.
func (s *section) frames(eh bool) (Frames, error) {
	data, err := s.contents(maxFrames, "call frame information")
	if err != nil {
		return Frames{}, err
	}
	frames := Frames{Data: data, Addr: s.addr, EH: eh}
	if text := s.img.named(".text"); text != nil {
		frames.Text = text.addr
	}
	if got := s.img.named(".got"); got != nil {
		frames.Got = got.addr
	}
	return frames, nil
}
