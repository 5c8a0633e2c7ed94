package symbol

import "debug/elf"

// dynamicTable is the dynamic segment: what the dynamic loader is to know of the file.
type dynamicTable struct {
	img  *image
	tags map[elf.DynTag]uint64 // the last value of each
}

// readDynamic reads the dynamic segment; that of a static program is empty. It reports
// false if the segment cannot be read.
func readDynamic(img *image) (*dynamicTable, bool) {
	d := &dynamicTable{img, make(map[elf.DynTag]uint64)}
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ != elf.PT_DYNAMIC {
			continue
		}
		b, err := img.read(s.offset, s.filesz, maxDynamic, "dynamic segment")
		if err != nil {
			return nil, false
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
			d.tags[tag] = value
		}
	}
	return d, true
}

// source finds .dynsym in the way of the dynamic loader.
func (d *dynamicTable) source() (source, bool) {
	src := source{img: d.img, nstrings: d.tags[elf.DT_STRSZ], dynamic: true}
	var ok1, ok2 bool
	src.offset, _, ok1 = d.img.offset(d.tags[elf.DT_SYMTAB])
	src.strings, _, ok2 = d.img.offset(d.tags[elf.DT_STRTAB])
	if !ok1 || !ok2 {
		return source{}, false
	}
	if v, ok := d.tags[elf.DT_VERSYM]; ok {
		src.versions, _, _ = d.img.offset(v)
	}
	if addr, ok := d.tags[elf.DT_HASH]; ok {
		src.count, ok = d.hashCount(addr)
		return src, ok
	}
	addr, ok := d.tags[elf.DT_GNU_HASH]
	if ok {
		src.count, ok = d.gnuHashCount(addr)
	}
	return src, ok
}

// hashCount returns the number of symbols according to a DT_HASH table: its second word is
// the length of the chain, which has one element per symbol.
func (d *dynamicTable) hashCount(addr uint64) (uint64, bool) {
	off, rest, ok := d.img.offset(addr)
	if !ok || rest < 8 {
		return 0, false
	}
	b, err := d.img.read(off, 8, 8, "hash table")
	if err != nil {
		return 0, false
	}
	return uint64(d.img.order.Uint32(b[4:])), true
}

// gnuHashCount returns the number of symbols according to a DT_GNU_HASH table: the chain of
// the bucket with the highest symbol ends with the last symbol.
func (d *dynamicTable) gnuHashCount(addr uint64) (uint64, bool) {
	off, rest, ok := d.img.offset(addr)
	if !ok {
		return 0, false
	}
	b, err := d.img.read(off, min(rest, d.img.size-min(off, d.img.size), maxHash), maxHash, "hash table")
	if err != nil || len(b) < 16 {
		return 0, false
	}
	buckets, first, bloom := uint64(d.img.order.Uint32(b)), uint64(d.img.order.Uint32(b[4:])), uint64(d.img.order.Uint32(b[8:]))
	word := uint64(4)
	if d.img.wide {
		word = 8
	}
	at := 16 + bloom*word
	if at > uint64(len(b)) || buckets > (uint64(len(b))-at)/4 {
		return 0, false
	}
	var last uint64
	for i := range buckets {
		last = max(last, uint64(d.img.order.Uint32(b[at+4*i:])))
	}
	if last < first {
		return first, true // no symbol is in the hash table
	}
	chain := b[at+4*buckets:]
	for i := last - first; i < uint64(len(chain))/4; i++ {
		if d.img.order.Uint32(chain[4*i:])&1 != 0 {
			return first + i + 1, true
		}
	}
	return 0, false
}
