package plan

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/tracer/site"
	"rtrace-bpf/tracer/site/cover"
)

// Functions that package cover cannot know from the code of their file. neverReturn lists
// those that do not return, and returnsFirst those that return their first argument.
var (
	neverReturn = []string{
		"abort", "exit", "_exit", "__assert_fail", "__stack_chk_fail", "__chk_fail", "__fortify_fail", "__libc_fatal",
		"_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__cxa_call_terminate", "__cxa_call_unexpected",
		"_ZSt17__throw_bad_allocv", "_ZSt9terminatev", "longjmp",
	}
	returnsFirst = []string{"memset", "memcpy", "memmove"}
)

// pathImage is the code of a file with what package cover needs to know about it.
type pathImage struct {
	cover.Image
	finder *cover.Finder
	names  map[uint64]string // of functions, by address; of several names one in the lists above
	slots  map[uint64]string // names of functions that pointers in the GOT lead to

	harmless map[uint64]bool // starts of functions that lead to no traced one: see code.unreachable
}

// errFixed is the reason why the functions of a program at a fixed address keep their return
// probes: nothing lists the places that hold addresses of its code.
var errFixed = fmt.Errorf("the program is at a fixed address")

// readPathImage reads what leads into the functions of a file from elsewhere.
func readPathImage(c *code) (*pathImage, error) {
	f, err := elf.Open(c.lib.path)
	if err != nil {
		return nil, fmt.Errorf("read relocations of %s: %w", c.lib.path, err)
	}
	defer f.Close()
	if f.Type != elf.ET_DYN {
		return nil, errFixed
	}
	im := &pathImage{
		Image: cover.Image{Arch: c.machine.Arch, Code: c.text.bytes, Base: c.text.base, Direct: c.direct},
		names: map[uint64]string{}, slots: map[uint64]string{}, harmless: map[uint64]bool{},
	}
	r := pathReader{pathImage: im, file: f, entered: make([]bool, len(im.Code)), targets: map[uint64]uint64{}}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("read relocations of %s: %w", c.lib.path, err)
	}
	im.Bounds = func(addr uint64) (start, end uint64, ok bool) {
		if fde, ok := c.bounds.index().Find(addr); ok {
			return fde.Start, fde.End, true
		}
		return 0, 0, false
	}
	im.Entered = func(addr uint64) bool {
		at := addr - im.Base
		return at < uint64(len(r.entered)) && r.entered[at]
	}
	im.Slot = func(addr uint64) (uint64, bool) {
		to, ok := r.targets[addr]
		return to, ok
	}
	im.Callee = im.callee
	im.finder = cover.NewFinder(&im.Image)
	return im, nil
}

// callee implements cover.Image.Callee.
func (im *pathImage) callee(addr uint64) (cover.Callee, bool) {
	name := im.names[addr]
	slot, isStub := im.stub(addr)
	if isStub {
		name = im.slots[slot]
	}
	known := cover.Callee{NoReturn: slices.Contains(neverReturn, name), First: slices.Contains(returnsFirst, name)}
	return known, isStub || known != cover.Callee{}
}

// stub returns the pointer through which the PLT stub at addr jumps.
func (im *pathImage) stub(addr uint64) (slot uint64, ok bool) {
	if addr < im.Base || addr-im.Base >= uint64(len(im.Code)) {
		return 0, false
	}
	return site.Stub(site.Options{Arch: im.Arch}, im.Code[addr-im.Base:], addr)
}

// pathReader reads an ELF file for a pathImage.
type pathReader struct {
	*pathImage
	file    *elf.File
	entered []bool            // whether other files, or pointers, may lead to an address of the code
	targets map[uint64]uint64 // functions of the file, by the address of the pointer to them
	symbols []elf.Symbol
	loaded  []segment // that hold pointers
}

// enter notes that other files, or a pointer, may lead to addr.
func (r *pathReader) enter(addr uint64) {
	if at := addr - r.Base; at < uint64(len(r.entered)) {
		r.entered[at] = true
	}
}

func (r *pathReader) read() (err error) {
	if r.symbols, err = r.file.DynamicSymbols(); err != nil {
		return err
	}
	exports := map[string]uint64{}
	for _, s := range r.symbols {
		kind := elf.ST_TYPE(s.Info)
		if s.Section == elf.SHN_UNDEF || kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC {
			continue
		}
		name, _, _ := strings.Cut(s.Name, "@")
		if kind == elf.STT_FUNC {
			exports[name] = s.Value
		}
		if r.names[s.Value] == "" || slices.Contains(neverReturn, name) || slices.Contains(returnsFirst, name) {
			r.names[s.Value] = name
		}
		r.enter(s.Value)
	}
	for _, s := range r.file.Sections {
		switch s.Type {
		case elf.SHT_RELA:
			err = r.relocations(s)
		case shtRELR:
			err = r.packedRelocations(s)
		case elf.SHT_REL:
			err = fmt.Errorf("section %s: unknown relocations", s.Name)
		}
		if err != nil {
			return err
		}
	}
	for slot, name := range r.slots {
		if to, ok := exports[name]; ok && r.targets[slot] == 0 {
			r.targets[slot] = to // these allocators' names are their own
		}
	}
	r.computed()
	return nil
}

// relocations reads a section of relocations with addends.
func (r *pathReader) relocations(s *elf.Section) error {
	data, err := s.Data()
	if err != nil {
		return err
	}
	for ; len(data) >= 24; data = data[24:] {
		at, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		to := binary.LittleEndian.Uint64(data[16:])
		if n := info >> 32; n != 0 {
			if n <= uint64(len(r.symbols)) {
				r.slots[at] = r.symbols[n-1].Name
			}
			continue
		}
		r.enter(to)
		if name := r.names[to]; name != "" {
			r.slots[at] = name
			if elf.R_X86_64(uint32(info)) == elf.R_X86_64_RELATIVE {
				r.targets[at] = to
			}
		}
	}
	return nil
}

// shtRELR is the type of sections of packed relative relocations.
const shtRELR = elf.SectionType(19)

// packedRelocations reads the pointers that packed relative relocations adjust. An even word
// is the address of one; an odd word has a bit for each of the 63 words after the last.
func (r *pathReader) packedRelocations(s *elf.Section) error {
	data, err := s.Data()
	if err != nil {
		return err
	}
	var next uint64
	for ; len(data) >= 8; data = data[8:] {
		w := binary.LittleEndian.Uint64(data)
		if w&1 == 0 {
			r.pointer(w)
			next = w + 8
			continue
		}
		for i := range uint64(63) {
			if w>>(i+1)&1 == 1 {
				r.pointer(next + 8*i)
			}
		}
		next += 63 * 8
	}
	return nil
}

// pointer notes where the pointer at addr leads to.
func (r *pathReader) pointer(addr uint64) {
	for i := range r.loaded {
		if b := r.loaded[i].between(addr, addr+8); len(b) == 8 {
			r.enter(binary.LittleEndian.Uint64(b))
			return
		}
	}
	for _, p := range r.file.Progs {
		if p.Type != elf.PT_LOAD || addr < p.Vaddr || addr-p.Vaddr+8 > p.Filesz {
			continue
		}
		s := segment{base: p.Vaddr, bytes: make([]byte, p.Filesz)}
		if _, err := p.ReadAt(s.bytes, 0); err == nil {
			r.loaded = append(r.loaded, s)
			r.enter(binary.LittleEndian.Uint64(s.between(addr, addr+8)))
		}
	}
}

// computed notes the addresses that the code computes relative to itself: lea n(%rip), reg.
// It is not known where instructions start, so each byte may be one.
func (r *pathReader) computed() {
	const opcode = 0x8d // the second of seven bytes
	for i := 1; i+6 <= len(r.Code); i++ {
		next := bytes.IndexByte(r.Code[i:len(r.Code)-5], opcode)
		if next < 0 {
			return
		}
		i += next
		if c := r.Code[i-1:]; c[0]&0xf8 == 0x48 && c[2]&0xc7 == 0x05 {
			r.enter(r.Base + uint64(i) + 6 + uint64(int64(int32(binary.LittleEndian.Uint32(c[3:])))))
		}
	}
}
