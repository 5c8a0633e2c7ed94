package resolve

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// Process is the address space of a traced process.
type Process struct {
	resolver *Resolver
	pid      int32
	jit      *symbol.PerfMap // nil if there is none
	looked   bool            // jit was looked for

	functions symbol.Functions // that records of the trace describe
	maps      []mapping        // by address, without overlaps
}

// mapping is what remains of an executable mapping at [start, end).
type mapping struct {
	start, end uint64
	whole      trace.Mapping // as it was added; its Path is the module's
	module     *module
	placed     bool   // bias was looked for
	known      bool   // bias was found
	bias       uint64 // what is added to the file's addresses
}

// maxMappings is the most mappings of a process that are kept at once. Linux allows 65530
// by default (vm.max_map_count), few of which are code of files.
const maxMappings = 1 << 14

// add adds a mapping and removes what it overlaps.
func (p *Process) add(m *trace.Mapping) {
	if m.End <= m.Start {
		return
	}
	mod := p.resolver.modules.mapped(m.Path)
	i := p.after(m.Start)
	if i < len(p.maps) && p.maps[i].is(m, mod) {
		return
	}
	p.remove(m.Start, m.End)
	if len(p.maps) >= maxMappings {
		p.resolver.stats.Unplaced++
		return
	}
	added := mapping{start: m.Start, end: m.End, whole: *m, module: mod}
	added.whole.Path = mod.path
	p.maps = slices.Insert(p.maps, p.after(m.Start), added)
	p.resolver.version++
}

// is reports whether m is the whole of what was added as a mapping of mod.
func (m *mapping) is(a *trace.Mapping, mod *module) bool {
	return m.start == a.Start && m.end == a.End && m.module == mod && m.whole == *a
}

// after returns the index of the first mapping that ends after addr.
func (p *Process) after(addr uint64) int {
	i, found := slices.BinarySearchFunc(p.maps, addr, func(m mapping, a uint64) int { return cmp.Compare(m.end, a) })
	if found {
		i++
	}
	return i
}

// remove removes what is mapped in [start, end).
func (p *Process) remove(start, end uint64) {
	if end <= start {
		return
	}
	from := p.after(start)
	to := from
	for to < len(p.maps) && p.maps[to].start < end {
		to++
	}
	if from == to {
		return
	}
	var kept []mapping
	if left := p.maps[from]; left.start < start {
		left.end = start
		kept = append(kept, left)
	}
	if right := p.maps[to-1]; right.end > end {
		right.start = end
		kept = append(kept, right)
	}
	p.maps = slices.Replace(p.maps, from, to, kept...)
	p.resolver.version++
}

func (p *Process) clear() {
	p.maps, p.functions = p.maps[:0], symbol.Functions{}
	p.resolver.version++
}

// Name returns the function that contains the call before the return address addr, with the
// name that it has in the source (C++ and Rust with parameters), and the path of its file.
// The name is empty if only the file is known. ok is false if nothing is mapped there.
func (p *Process) Name(addr uint64) (name, module string, ok bool) {
	f := p.frame(addr)
	return f.name, f.module, f != unknown
}

// Module returns the path of the file that is mapped at the call before the return address
// addr, or "" if nothing is. It opens no file.
func (p *Process) Module(addr uint64) string {
	if i := p.after(addr - 1); i < len(p.maps) && p.maps[i].start < addr {
		return p.maps[i].module.path
	}
	return ""
}

// Mapped reports whether the trace has the mappings of the process.
func (p *Process) Mapped() bool { return len(p.maps) > 0 }

// Position returns the file at a return address and the offset in it, such as "prog+0x1234",
// which is the same in each run; "" if no file is mapped there. It opens no file.
func (p *Process) Position(addr uint64) string {
	i := p.after(addr - 1)
	if i == len(p.maps) || p.maps[i].start >= addr {
		return ""
	}
	m := &p.maps[i]
	if !isFile(m.module.path) {
		return ""
	}
	return path.Base(m.module.path) + "+0x" + strconv.FormatUint(addr-m.whole.Start+m.whole.Offset, 16)
}

// Text returns the text for a return address as sp-rtrace's resolver prints it: "main()
// from /bin/x", "from /bin/x" if the function is unknown, "in ??" if the file is.
func (p *Process) Text(addr uint64) string { return p.frame(addr).text }

// Better is Text for a frame that may already have a text. A text that names a function or
// a file stays, unless replace is set and more is known.
func (p *Process) Better(addr uint64, text string, replace bool) string {
	if text == "" || text == frametext.Unknown {
		return p.frame(addr).text
	}
	if !replace {
		return text
	}
	f := p.frame(addr)
	if f.name == "" && (f == unknown || frametext.Parse(text).Function != "") {
		return text
	}
	return f.text
}

// frame returns what is known of the call before a return address. The lookup uses the byte
// before the address, because a call may be the last instruction of its function.
func (p *Process) frame(addr uint64) *frame {
	r := p.resolver
	c := r.cached(addr)
	if c.addr == addr && c.process == p && c.version == r.version {
		return c.frame
	}
	f := p.lookup(addr - 1)
	*c = slot{addr, p, f, r.version}
	return f
}

func (p *Process) lookup(addr uint64) *frame {
	if name, module, ok := p.functions.Lookup(addr); ok {
		return traced(name, module)
	}
	m, f, at := p.locate(addr)
	switch {
	case m == nil:
		return p.made(addr, unknown, &p.resolver.unmapped)
	case m.module.path == vsyscallName:
		return m.module.frames.vsyscall(addr)
	case f == nil && m.module.noFile:
		return p.made(addr, m.module.frames.bare, &p.resolver.generated)
	}
	found := m.module.frames.bare
	switch {
	case f == nil:
	case p.resolver.options.Style.Lines:
		found = m.module.place(p.resolver, f, at)
	default:
		found = m.module.frames.function(f, f.Find(at))
	}
	if found.name == "" {
		m.module.unnamed++
	}
	return found
}

// traced returns the frame of an address in a function that a record of the trace
// describes.
func traced(name, module string) *frame {
	text := name
	if !strings.ContainsAny(text, "( ") { // otherwise it contains parameters, or is no name of C
		text += "()"
	}
	if module != "" {
		text += " from " + module
	}
	return &frame{name: name, module: module, text: text}
}

// made returns the frame of an address in code that the process generated, or else other, which it
// counts.
func (p *Process) made(addr uint64, other *frame, n *int) *frame {
	r := p.resolver
	if !p.looked {
		p.looked = true
		if pid := cmp.Or(p.pid, r.pid); r.options.PerfMap != nil {
			if path, trusted := r.options.PerfMap(pid); path != "" {
				var err error
				if p.jit, err = symbol.OpenPerfMap(path, trusted); err != nil && r.options.Warn != nil {
					r.options.Warn(err)
				}
			}
		}
	}
	name, ok := p.jit.Lookup(addr)
	if !ok {
		*n++
		return other
	}
	return &frame{name: name, module: p.jit.Path(), text: name + " from " + p.jit.Path()}
}

// locate returns the mapping that covers addr, its file, and the address in the file. m is
// nil where nothing is mapped. f is nil where the file is unknown or does not fit.
func (p *Process) locate(addr uint64) (m *mapping, f *symbol.File, at uint64) {
	i := p.after(addr)
	if i == len(p.maps) || addr < p.maps[i].start {
		return nil, nil, 0
	}
	m = &p.maps[i]
	if f = p.resolver.load(m.module); f == nil {
		return m, nil, 0
	}
	if !m.placed {
		m.placed = true
		if m.bias, m.known = place(&m.whole, f); !m.known {
			p.resolver.stats.Unplaced++
			p.resolver.warn(m.module, errPlace)
		}
	}
	if !m.known {
		return m, nil, 0
	}
	return m, f, addr - m.bias
}

// pageSizes are those that Linux uses on the architectures that trace files come from, the
// most common first.
var pageSizes = [...]uint64{4 << 10, 16 << 10, 64 << 10}

// place returns the load bias of f where m maps it.
func place(m *trace.Mapping, f *symbol.File) (bias uint64, ok bool) {
	code := f.Segments()
	switch {
	case f.Fixed():
		return 0, true
	case f.Detached():
		// The segments of a debug file have the right addresses and sizes in memory, but
		// offsets and sizes in the file mean nothing.
		for i := range code {
			code[i].FileSize = code[i].MemSize
		}
	case m.Base != 0:
		return placeOffset(m, code)
	}
	base, _, _ := f.Base()
	for _, page := range pageSizes {
		if bias, ok, unsure := placeLength(m, code, base, page); ok || unsure {
			return bias, ok
		}
	}
	return 0, false
}

// placeOffset uses the file offset: the segment that shares most bytes with the mapping
// decides.
func placeOffset(m *trace.Mapping, code []symbol.Segment) (bias uint64, ok bool) {
	last, most := m.Offset+(m.End-m.Start), uint64(0)
	for _, s := range code {
		from, to := max(m.Offset, s.Offset), min(last, s.Offset+s.FileSize)
		if to > from && to-from > most {
			most = to - from
			bias, ok = m.Start-(m.Offset-s.Offset+s.Addr), true
		}
	}
	return bias, ok
}

// placeLength uses the length, in pages of the given size. The length of a code segment
// means that the mapping is that segment. The length from base to the end of a code segment
// means that the mapping starts at the load base. unsure reports that both fit and
// disagree.
func placeLength(m *trace.Mapping, code []symbol.Segment, base, page uint64) (bias uint64, ok, unsure bool) {
	base &^= page - 1
	for _, s := range code {
		end := (s.Addr + s.FileSize + page - 1) &^ (page - 1)
		for _, start := range [...]uint64{s.Addr &^ (page - 1), base} {
			b := m.Start - start
			if end-start != m.End-m.Start || b%page != 0 || b > m.Start {
				continue
			}
			if ok && b != bias {
				return 0, false, true
			}
			bias, ok = b, true
		}
	}
	return bias, ok, false
}
