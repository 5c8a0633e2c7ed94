package symbol

import "debug/elf"

// Alone says whether the file needs no other library: a statically linked
// program, or a library that is not built on one, as a C library may be.
func (f *File) Alone() bool {
	alone := true
	ok := f.image.dynamic(func(tag elf.DynTag, _ uint64) {
		alone = alone && tag != elf.DT_NEEDED
	})
	return ok && alone
}

// GOT returns the address that position-independent code of i386 holds in ebx
// while it calls through the PLT: that of the table of pointers which the
// dynamic loader fills in. It is 0 if the file does not say.
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

// dynamic calls yield for each entry of the dynamic segment, of which a static
// program has none. It reports false if there is one that cannot be read.
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
