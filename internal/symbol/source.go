package symbol

import (
	"debug/elf"

	"rtrace-bpf/trace"
)

// source is the place of a symbol table, and of what belongs to it, in a file.
type source struct {
	offset, count     uint64 // the symbols
	strings, nstrings uint64 // their names, bytes
	versions          uint64 // .gnu.version: two bytes per symbol; 0 if there is none
	dynamic           bool   // .dynsym
}

// symbolSize is sizeof(Elf64_Sym) or sizeof(Elf32_Sym).
func (img *image) symbolSize() uint64 {
	if img.wide {
		return 24
	}
	return 16
}

// sources returns the symbol tables of the file, .dynsym first.
func (img *image) sources() []source {
	var found []source
	for _, typ := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		for i := range img.sections {
			if s := &img.sections[i]; s.typ == typ && s.stored() {
				if src, ok := img.sectionSource(uint32(i), s); ok {
					found = append(found, src)
				}
				break // the format allows one of each
			}
		}
	}
	if len(found) == 0 {
		if src, ok := img.dynamicSource(); ok {
			found = append(found, src)
		}
	}
	return found
}

func (img *image) sectionSource(index uint32, s *section) (source, bool) {
	if uint64(s.link) >= uint64(len(img.sections)) || s.entsize != 0 && s.entsize != img.symbolSize() {
		return source{}, false
	}
	names := &img.sections[s.link]
	if names.typ != elf.SHT_STRTAB || !names.stored() {
		return source{}, false
	}
	src := source{
		offset: s.offset, count: s.size / img.symbolSize(), strings: names.offset, nstrings: names.size,
		dynamic: s.typ == elf.SHT_DYNSYM,
	}
	for i := range img.sections {
		v := &img.sections[i]
		if v.typ == elf.SHT_GNU_VERSYM && v.link == index && v.stored() && v.size/2 >= src.count {
			src.versions = v.offset
		}
	}
	return src, true
}

// dynamicSource finds .dynsym in the way of the dynamic loader.
func (img *image) dynamicSource() (source, bool) {
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ != elf.PT_DYNAMIC {
			continue
		}
		b, err := img.read(s.offset, s.filesz, maxDynamic, "dynamic segment")
		if err != nil {
			return source{}, false
		}
		return img.parseDynamic(b)
	}
	return source{}, false
}

func (img *image) parseDynamic(b []byte) (source, bool) {
	tags := make(map[elf.DynTag]uint64)
	size := 8
	if img.wide {
		size = 16
	}
	for c := img.cursor(b); len(c.b) >= size; {
		tag := elf.DynTag(c.word())
		if tag == elf.DT_NULL {
			break
		}
		tags[tag] = c.word()
	}
	src := source{nstrings: tags[elf.DT_STRSZ], dynamic: true}
	var ok1, ok2 bool
	src.offset, _, ok1 = img.offset(tags[elf.DT_SYMTAB])
	src.strings, _, ok2 = img.offset(tags[elf.DT_STRTAB])
	if !ok1 || !ok2 {
		return source{}, false
	}
	if v, ok := tags[elf.DT_VERSYM]; ok {
		src.versions, _, _ = img.offset(v)
	}
	if addr, ok := tags[elf.DT_HASH]; ok {
		src.count, ok = img.hashCount(addr)
		return src, ok
	}
	addr, ok := tags[elf.DT_GNU_HASH]
	if ok {
		src.count, ok = img.gnuHashCount(addr)
	}
	return src, ok
}

// hashCount returns the number of symbols according to a DT_HASH table: its second word is
// the length of the chain, which has one element per symbol.
func (img *image) hashCount(addr uint64) (uint64, bool) {
	off, rest, ok := img.offset(addr)
	if !ok || rest < 8 {
		return 0, false
	}
	b, err := img.read(off, 8, 8, "hash table")
	if err != nil {
		return 0, false
	}
	return uint64(img.order.Uint32(b[4:])), true
}

// gnuHashCount returns the number of symbols according to a DT_GNU_HASH table: the chain of
// the bucket with the highest symbol ends with the last symbol.
func (img *image) gnuHashCount(addr uint64) (uint64, bool) {
	off, rest, ok := img.offset(addr)
	if !ok {
		return 0, false
	}
	b, err := img.read(off, min(rest, img.size-min(off, img.size), maxHash), maxHash, "hash table")
	if err != nil || len(b) < 16 {
		return 0, false
	}
	buckets, first, bloom := uint64(img.order.Uint32(b)), uint64(img.order.Uint32(b[4:])), uint64(img.order.Uint32(b[8:]))
	word := uint64(4)
	if img.wide {
		word = 8
	}
	at := 16 + bloom*word
	if at > uint64(len(b)) || buckets > (uint64(len(b))-at)/4 {
		return 0, false
	}
	var last uint64
	for i := range buckets {
		last = max(last, uint64(img.order.Uint32(b[at+4*i:])))
	}
	if last < first {
		return first, true // no symbol is in the hash table
	}
	chain := b[at+4*buckets:]
	for i := last - first; i < uint64(len(chain))/4; i++ {
		if img.order.Uint32(chain[4*i:])&1 != 0 {
			return first + i + 1, true
		}
	}
	return 0, false
}

// check checks the bounds of src against the file and the limits.
func (img *image) check(src *source) error {
	if src.count > maxSymbols {
		return fail(src.offset, trace.ErrLimit, "count of symbols")
	}
	if src.offset > img.size || src.count*img.symbolSize() > img.size-src.offset {
		return fail(src.offset, trace.ErrTruncated, "symbol table")
	}
	return nil
}
