package symbol

import (
	"debug/elf"
	"encoding/binary"
)

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

// Order returns the byte order of the file.
func (f *File) Order() binary.ByteOrder { return f.image.order }

// EHFrame returns .eh_frame, which the dynamic loader maps together with the code. In a
// file without section headers it is found through .eh_frame_hdr.
func (f *File) EHFrame() (Frames, error) {
	img := f.image
	if s := img.named(".eh_frame"); s != nil && s.stored() {
		return img.frames(s, true)
	}
	addr, off, n, err := img.findFrames()
	if err != nil || n == 0 {
		return Frames{}, err
	}
	data, err := img.read(off, n, maxFrames, ".eh_frame")
	return Frames{Data: data, Addr: addr, EH: true}, err
}

// DebugFrame returns .debug_frame, which debuggers use and no program maps. It comes from
// the file itself or else from its separate debug file.
func (f *File) DebugFrame() (Frames, error) {
	if s := f.image.named(".debug_frame"); s != nil && s.typ != elf.SHT_NOBITS {
		return f.image.frames(s, false)
	}
	debug := f.openDebug(false)
	if debug == nil {
		return Frames{}, nil
	}
	defer debug.closer.Close()
	if s := debug.named(".debug_frame"); s != nil && s.typ != elf.SHT_NOBITS {
		return debug.frames(s, false)
	}
	return Frames{}, nil
}

// frames reads a section of call frame information.
func (img *image) frames(s *section, eh bool) (Frames, error) {
	data, err := img.contents(s, maxFrames, "call frame information")
	if err != nil {
		return Frames{}, err
	}
	frames := Frames{Data: data, Addr: s.addr, EH: eh}
	if text := img.named(".text"); text != nil {
		frames.Text = text.addr
	}
	if got := img.named(".got"); got != nil {
		frames.Got = got.addr
	}
	return frames, nil
}
