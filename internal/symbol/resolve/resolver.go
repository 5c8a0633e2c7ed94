package resolve

import (
	"debug/elf"
	"io/fs"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/linecache"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// Options say where files are found.
type Options struct {
	// Places are where files and debug files are looked for.
	symbol.Places
	// Open opens the file of a module instead; its BuildID is empty if the
	// trace does not tell. The resolver loads and closes what it returns.
	Open func(trace.Module) (*symbol.File, error)
	// PerfMap returns the path of the file in which a process of the given id, 0 if
	// that is unknown, says where it put the code that it made (perf's map files);
	// nil or an empty path for none. trusted, if not nil, reports whether the file may be
	// the process's own.
	PerfMap func(pid int32) (path string, trusted func(fs.FileInfo) bool)
	// Style says how frames are printed.
	Style Style
	// Warn, if not nil, is told once of each file why its functions have no names.
	Warn func(error)
	// NoLines leaves debugging information alone, which may take seconds to
	// read: of callers the function is all that is told.
	NoLines bool
	// MaxDebug bounds the bytes of debugging information that are held of all
	// files; 0 for 1 GiB. Files that come later have names of functions only.
	MaxDebug uint64
	// MaxSymbols bounds the bytes of symbols that are held of all files, but
	// for one, which has a bound of its own; 0 for 4 GiB. Files that come later
	// have no names.
	MaxSymbols uint64
	// Cache, if not nil, keeps what debugging information says from one run to the
	// next; see [Resolver.Save]. It is not used together with Places.Fetch, which
	// may have other files each time.
	Cache *linecache.Cache
}

// Style is how frames are printed.
type Style struct {
	// Lines prints source lines and inlined functions, where debugging
	// information tells; else names come from symbols alone.
	Lines bool
	// FullPath prints source files with their folders.
	FullPath bool
}

// maxSymbols is what Options.MaxSymbols is unless told.
const maxSymbols = 4 << 30

// Stats counts why names are missing.
type Stats struct {
	Missing    int // files that could not be opened or read
	Mismatched int // files that are not those that were traced
	Unplaced   int // mappings that do not fit their file, or are too many
}

// Resolver names the addresses of a trace. It is not safe for concurrent use.
type Resolver struct {
	options   Options
	processes map[int32]*Process
	first     *Process
	none      *Process // has nothing mapped
	modules   map[moduleKey]*module
	latest    map[string]*module // by path: the file that was described last
	cache     []slot
	version   uint32        // of all mappings; cached answers of another one are void
	machines  []elf.Machine // that the trace may be of; empty if unknown
	pid       int32         // of the process that the trace names first
	frame     []lines.Frame // reused
	debug     uint64        // bytes of debugging information that are held, and of the indexes of it
	symbols   uint64        // bytes of symbols that are held
	loaded    int           // bytes of what was read of it
	maxLoaded int
	stats     Stats
}

type moduleKey struct{ path, buildID string }

// cacheBits is the binary logarithm of how many addresses are cached, a few
// times what a program with deep stacks uses.
const cacheBits = 15

// slot is a cached answer. Addresses with the same hash replace each other.
type slot struct {
	addr    uint64
	process *Process
	frame   *frame
	version uint32
}

// frame is what is known of an address. Those of one function are shared.
type frame struct {
	name, module string // of the innermost function
	text         string
}

// unknown is the frame of an address that no mapping covers.
var unknown = &frame{text: frametext.Unknown}

// New returns a Resolver that knows no mappings.
func New(o Options) *Resolver {
	r := &Resolver{
		options: o, processes: make(map[int32]*Process), modules: make(map[moduleKey]*module),
		latest: make(map[string]*module), cache: make([]slot, 1<<cacheBits), version: 1, maxLoaded: maxLoaded,
	}
	r.none = &Process{resolver: r}
	return r
}

// Observe takes in the next record of the trace: mappings, modules and what
// voids them, and functions. Other kinds are ignored. Nothing of rec is kept.
func (r *Resolver) Observe(rec *trace.Record) {
	switch rec.Kind {
	case trace.KindHeader:
		r.machines = machinesOf(rec.Header.Arch)
	case trace.KindProcess:
		if r.pid == 0 {
			r.pid = rec.PID
		}
	case trace.KindModule:
		r.describe(&rec.Module)
	case trace.KindMapping:
		r.process(rec.PID).add(&rec.Mapping)
	case trace.KindUnmapping:
		r.process(rec.PID).remove(rec.Mapping.Start, rec.Mapping.End)
	case trace.KindExec:
		r.process(rec.PID).clear()
	case trace.KindFunction:
		f := &rec.Function
		r.process(rec.PID).functions.Add(f.Name, f.Module, f.Start, f.End)
		r.version++
	}
}

// describe notes which file a path stands for from now on. Mappings of that
// path that came before any description get it, too.
func (r *Resolver) describe(m *trace.Module) {
	mod := r.module(m.Path, m.BuildID)
	if !mod.known {
		mod.known, mod.record = true, *m
		mod.record.Path, mod.record.BuildID = mod.path, mod.buildID
	}
	r.latest[mod.path] = mod
	before := r.modules[moduleKey{path: mod.path}]
	if before == nil || before == mod || !before.waiting {
		return
	}
	before.waiting = false
	for _, p := range r.processes {
		for i := range p.maps {
			if at := &p.maps[i]; at.module == before {
				at.module, at.placed = mod, false
			}
		}
	}
	r.version++
}

// module returns the file with the given path and build-id.
func (r *Resolver) module(path, buildID string) *module {
	buildID = strings.ToLower(buildID)
	if m, ok := r.modules[moduleKey{path, buildID}]; ok {
		return m
	}
	path, buildID = strings.Clone(path), strings.Clone(buildID)
	m := &module{path: path, buildID: buildID, bare: &frame{module: path, text: "from " + path}}
	r.modules[moduleKey{path, buildID}] = m
	return m
}

// mapped returns the file that a mapping of path shows now.
func (r *Resolver) mapped(path string) *module {
	if m, ok := r.latest[path]; ok {
		return m
	}
	m := r.module(path, "")
	m.waiting = true
	return m
}

// process returns the process with the given id, which is new if need be.
func (r *Resolver) process(pid int32) *Process {
	p, ok := r.processes[pid]
	if !ok {
		p = &Process{resolver: r, pid: pid}
		r.processes[pid] = p
		if r.first == nil {
			r.first = p
		}
	}
	return p
}

// Process returns the address space of a process. Many traces name the process
// in some records only; so if pid is 0 or unknown, that is the one without an
// id, or else the first one. The result is good until the next Observe.
func (r *Resolver) Process(pid int32) *Process {
	if p, ok := r.processes[pid]; ok {
		return p
	}
	if p, ok := r.processes[0]; ok {
		return p
	}
	if r.first != nil && (pid == 0 || len(r.processes) == 1) {
		return r.first
	}
	return r.none
}

// Name names a return address of the only process of the trace; see
// [Process.Name].
func (r *Resolver) Name(addr uint64) (name, module string, ok bool) {
	return r.Process(0).Name(addr)
}

// Function returns the function of a process that was called from before a return
// address, as [Process.Name] does; empty if that is not known.
func (r *Resolver) Function(pid int32, addr uint64) string {
	name, _, _ := r.Process(pid).Name(addr)
	return name
}

// Text prints a return address of the only process of the trace; see
// [Process.Text].
func (r *Resolver) Text(addr uint64) string { return r.Process(0).Text(addr) }

// Stats returns what was missing so far. Files are opened when an address in
// them is asked for first.
func (r *Resolver) Stats() Stats { return r.stats }

// cached returns the slot where the answer for an address is kept.
func (r *Resolver) cached(addr uint64) *slot { return &r.cache[slotOf(addr)] }

// slotOf returns the number of an address's slot in a cache.
func slotOf(addr uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: spreads neighbours
	return addr * golden >> (64 - cacheBits)
}
