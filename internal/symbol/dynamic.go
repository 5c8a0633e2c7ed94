package symbol

import "debug/elf"

// Alone reports whether the file needs no other library. That holds for a statically linked
// program and for a library that builds on none, as a C library may.
func (f *File) Alone() bool {
	alone := true
	ok := f.image.dynamic(func(tag elf.DynTag, _ uint64) {
		alone = alone && tag != elf.DT_NEEDED
	})
	return ok && alone
}

// GOT returns the address that position-independent i386 code holds in ebx while it calls
// through the PLT: the table of pointers that the dynamic loader fills in. It is 0 if the
// file does not give it.
func (f *File) GOT() uint64 {
	var addr uint64
	ok := f.image.dynamic(func(tag elf.DynTag, value uint64) {
		if tag == elf.DT_PLTGOT {
			addr = value
		}
	})
	if !ok {
		return 0
	}
	return addr
}

// dynamic calls yield for each entry of the dynamic segment; a static program has none. It
// reports false if an entry cannot be read.
func (img *image) dynamic(yield func(tag elf.DynTag, value uint64)) bool {
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
			tag, value := elf.DynTag(c.word()), c.word()
			if tag == elf.DT_NULL {
				break
			}
			yield(tag, value)
		}
	}
	return true
}
