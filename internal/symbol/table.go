package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"math"
	"slices"
	"unsafe"
)

// maxName is the longest name that is kept, in bytes.
const maxName = math.MaxUint16

// entry is a function symbol. Its name is in the table's strings.
type entry struct {
	addr   uint64
	size   uint32 // bytes, 0 if the symbol does not give it
	name   uint32 // offset in strings
	length uint16 // without a version suffix
	flags  entryFlags
	under  uint8 // leading underscores
}

type entryFlags uint8

const (
	flagLocal   entryFlags = 1 << iota // not visible outside its file
	flagWeak                           // weak binding
	flagIFunc                          // STT_GNU_IFUNC: addr is that of its resolver
	flagNoType                         // a label in hand-written code
	flagOld                            // of a version that new programs are not linked to
	flagDynamic                        // also in .dynsym
)

// table holds the functions of a file, by address. It keeps all names. Lookups by address
// use the spans.
type table struct {
	entries []entry // by address, then by preference
	strings []byte  // string tables one after another
	starts  []uint64
	owners  []int32 // entry that owns [starts[i], starts[i+1]), or -1
}

// builder collects symbols of one file and its debug file.
type builder struct {
	table
	code     []extent // executable sections; empty if the file has no section headers
	segments []extent // executable segments
	arm      bool     // bit 0 of an address selects the instruction set
	mapping  bool     // names that begin with $ mark data in code
	err      error
}

// extent is the addresses [start, end).
type extent struct{ start, end uint64 }

// within returns the extent that contains addr, from a list sorted by start.
func within(list []extent, addr uint64) (extent, bool) {
	i, found := slices.BinarySearchFunc(list, addr, func(e extent, a uint64) int { return cmp.Compare(e.start, a) })
	if !found {
		i--
	}
	if i >= 0 && addr < list[i].end {
		return list[i], true
	}
	return extent{}, false
}

func newBuilder(img *image) *builder {
	b := &builder{arm: img.machine == elf.EM_ARM}
	b.mapping = b.arm || img.machine == elf.EM_AARCH64 || img.machine == elf.EM_RISCV
	for i := range img.segments {
		if s := &img.segments[i]; s.code() {
			b.segments = append(b.segments, extent{s.addr, s.addr + s.memsz})
		}
	}
	for i := range img.sections {
		s := &img.sections[i]
		if s.flags&(elf.SHF_ALLOC|elf.SHF_EXECINSTR) == elf.SHF_ALLOC|elf.SHF_EXECINSTR && s.addr+s.size > s.addr {
			b.code = append(b.code, extent{s.addr, s.addr + s.size})
		}
	}
	byStart := func(a, b extent) int { return cmp.Compare(a.start, b.start) }
	slices.SortFunc(b.segments, byStart)
	slices.SortFunc(b.code, byStart)
	return b
}

// add adds the functions of all symbol tables of img. It keeps the error of a table in
// b.err and continues with the others.
func (b *builder) add(img *image) {
	for _, src := range sources(img) {
		if err := b.addSource(&src); err != nil {
			b.err = errors.Join(b.err, err)
		}
	}
}

func (b *builder) addSource(src *source) error {
	if err := src.check(); err != nil {
		return err
	}
	base := uint64(len(b.strings))
	if err := b.addStrings(src); err != nil {
		return err
	}
	const sure = 1 << 16                                            // entries: a claim in the file must not take much memory
	b.entries = slices.Grow(b.entries, int(min(src.count/2, sure))) // most of the rest is data
	var versions []byte
	if src.versions != 0 {
		// Without versions the names are still right.
		versions, _ = src.img.read(src.versions, src.count*2, maxSymbols*2, "symbol versions")
	}
	return src.each(func(i uint64, raw rawSymbol) {
		var version uint16
		if len(versions) > 0 {
			version = src.img.order.Uint16(versions[2*i:])
		}
		b.addSymbol(raw, base, src.nstrings, src.dynamic, version)
	})
}

// addStrings appends the names of a symbol table to those that are there.
func (b *builder) addStrings(src *source) error {
	have := uint64(len(b.strings))
	if err := src.checkNames(have); err != nil {
		return err
	}
	b.strings = slices.Grow(b.strings, int(src.nstrings))[:have+src.nstrings]
	if err := src.readNames(b.strings[have:]); err != nil {
		b.strings = b.strings[:have]
		return err
	}
	return nil
}

// versionHidden is VERSYM_HIDDEN: the version is not the default one.
const versionHidden = 0x8000

// addSymbol adds a symbol if it is a function. Its name is at base+name of b.strings, in a
// table of nstrings bytes.
func (b *builder) addSymbol(raw rawSymbol, base, nstrings uint64, dynamic bool, version uint16) {
	var flags entryFlags
	switch elf.ST_TYPE(raw.info) {
	case elf.STT_FUNC:
	case elf.STT_GNU_IFUNC:
		flags |= flagIFunc
	case elf.STT_NOTYPE:
		flags |= flagNoType
	default:
		return
	}
	switch elf.ST_BIND(raw.info) {
	case elf.STB_LOCAL:
		flags |= flagLocal
	case elf.STB_WEAK:
		flags |= flagWeak
	}
	if raw.index == elf.SHN_UNDEF || uint64(raw.name) >= nstrings {
		return
	}
	addr := raw.value
	if b.arm {
		addr &^= 1
	}
	seg, ok := within(b.segments, addr)
	if !ok {
		return
	}
	if flags&flagNoType != 0 && !b.label(raw, addr) {
		return
	}
	begin := base + uint64(raw.name)
	text := b.strings[begin:min(begin+maxName+1, base+nstrings)]
	length := bytes.IndexByte(text, 0)
	if length <= 0 {
		return
	}
	text = text[:length]
	if b.mapping && text[0] == '$' {
		return
	}
	if at := bytes.IndexByte(text, '@'); at > 0 && !dynamic {
		if len(text) == at+1 || text[at+1] != '@' {
			flags |= flagOld
		}
		text = text[:at]
	}
	if dynamic {
		flags |= flagDynamic
		if version&versionHidden != 0 {
			flags |= flagOld
		}
	}
	b.entries = append(b.entries, entry{
		addr: addr, size: uint32(min(raw.size, seg.end-addr, math.MaxUint32)), name: uint32(begin), length: uint16(len(text)),
		flags: flags, under: underscores(text),
	})
}

// label reports whether an untyped symbol may mark code: it belongs to a section, and its
// address is in an executable one.
func (b *builder) label(raw rawSymbol, addr uint64) bool {
	_, ok := within(b.code, addr)
	return ok && raw.index < elf.SHN_LORESERVE
}

// underscores counts the underscores before a C name. Those at the start of a C++ or Rust
// name are part of the mangling and do not count.
func underscores(name []byte) uint8 {
	if bytes.HasPrefix(name, []byte("_Z")) || bytes.HasPrefix(name, []byte("_R")) {
		return 0
	}
	n := len(name) - len(bytes.TrimLeft(name, "_"))
	return uint8(min(n, math.MaxUint8))
}

// held returns how many bytes of memory the table occupies.
func (t *table) held() uint64 {
	const entrySize, startSize, ownerSize = uint64(unsafe.Sizeof(entry{})), 8, 4
	return uint64(cap(t.entries))*entrySize + uint64(cap(t.strings)) + uint64(cap(t.starts))*startSize + uint64(cap(t.owners))*ownerSize
}

func (t *table) name(e *entry) []byte {
	return t.strings[e.name : uint64(e.name)+uint64(e.length)]
}

// maxCompared is how many bytes of two names are compared. It bounds the time for sorting a
// file with many long equal names.
const maxCompared = 256

// compare orders entries by address and, at one address, by preference: functions before
// labels, the longest first, visible before local, current versions before old ones, few
// underscores before many, strong before weak, short before long, and then by bytes.
func (t *table) compare(a, b entry) int {
	if c := cmp.Compare(a.addr, b.addr); c != 0 {
		return c
	}
	for _, flag := range []entryFlags{flagNoType, 0, flagLocal, flagOld} {
		c := cmp.Compare(a.flags&flag, b.flags&flag)
		if flag == 0 {
			c = cmp.Compare(b.size, a.size)
		}
		if c != 0 {
			return c
		}
	}
	if c := cmp.Or(cmp.Compare(a.under, b.under), cmp.Compare(a.flags&flagWeak, b.flags&flagWeak), cmp.Compare(a.length, b.length)); c != 0 {
		return c
	}
	x, y := t.name(&a), t.name(&b)
	return bytes.Compare(x[:min(len(x), maxCompared)], y[:min(len(y), maxCompared)])
}

// finish sorts the entries and prepares the table for lookups.
func (b *builder) finish() *table {
	t := &b.table
	slices.SortFunc(t.entries, t.compare)
	t.unite()
	b.spans()
	return &table{slices.Clone(t.entries), t.strings, slices.Clone(t.starts), slices.Clone(t.owners)}
}

// unite removes entries that are in both .symtab and .dynsym. The two are adjacent after
// sorting unless they differ in more than where they come from.
func (t *table) unite() {
	kept := t.entries[:0]
	for _, e := range t.entries {
		if n := len(kept); n > 0 {
			last := &kept[n-1]
			if last.addr == e.addr && last.length == e.length && last.size == e.size && bytes.Equal(t.name(last), t.name(&e)) {
				last.flags = (last.flags | e.flags&flagDynamic) &^ (flagOld &^ e.flags)
				continue
			}
		}
		kept = append(kept, e)
	}
	t.entries = kept
}

// find returns the entry that names addr, or -1.
func (t *table) find(addr uint64) int {
	i, found := slices.BinarySearch(t.starts, addr)
	if !found {
		i--
	}
	if i < 0 {
		return -1
	}
	return int(t.owners[i])
}

// at returns the range of entries with the given address.
func (t *table) at(addr uint64) (from, to int) {
	from, _ = slices.BinarySearchFunc(t.entries, addr, func(e entry, a uint64) int { return cmp.Compare(e.addr, a) })
	to = from
	for to < len(t.entries) && t.entries[to].addr == addr {
		to++
	}
	return from, to
}

// defined returns the best entry with the given name, or -1: a visible one before a local
// one, then the default version before others, then the lowest address.
func (t *table) defined(name string) int {
	best, bestRank := -1, 0
	for i := range t.entries {
		e := &t.entries[i]
		if int(e.length) != len(name) || string(t.name(e)) != name {
			continue
		}
		rank := int(e.flags & flagNoType >> 3)
		if e.flags&flagLocal != 0 {
			rank += 4
		}
		if e.flags&flagOld != 0 {
			rank += 2
		}
		if best < 0 || rank < bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

// text returns a copy of the name of an entry.
func (t *table) text(e *entry) string { return string(t.name(e)) }

// symbol returns the i-th entry as a Symbol.
func (t *table) symbol(i int) Symbol {
	e := &t.entries[i]
	return Symbol{
		Name: t.text(e), Addr: e.addr, Size: uint64(e.size),
		IFunc: e.flags&flagIFunc != 0, Global: e.flags&flagLocal == 0,
	}
}
