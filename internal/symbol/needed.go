package symbol

import "debug/elf"

// Alone says whether the file needs no other library: a statically linked
// program, or a library that is not built on one, as a C library may be.
func (f *File) Alone() bool {
	img := f.image
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ != elf.PT_DYNAMIC {
			continue
		}
		b, err := img.read(s.offset, s.filesz, maxDynamic, "dynamic segment")
		if err != nil {
			return false
		}
		size := 8
		if img.wide {
			size = 16
		}
		for c := img.cursor(b); len(c.b) >= size; {
			tag := elf.DynTag(c.word())
			c.word()
			if tag == elf.DT_NEEDED {
				return false
			}
			if tag == elf.DT_NULL {
				break
			}
		}
	}
	return true
}
