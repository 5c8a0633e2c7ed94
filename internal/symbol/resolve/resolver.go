package resolve

import (
	"cmp"
	"debug/elf"
	"io/fs"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/linecache"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// Options holds where files are found and how frames are printed.
type Options struct {
	// Places is where files and debug files are looked for.
	symbol.Places
	// Open, if not nil, opens the file of a module instead of Places. The module's BuildID
	// is empty if the trace does not give it. The resolver loads and closes what it
	// returns.
	Open func(trace.Module) (*symbol.File, error)
	// Identified uses only files that the trace identifies: by build ID, or as a file without
	// one that has not changed since the recording began.
	Identified bool
	// PerfMap returns the path of the perf map in which the process with the given ID, 0 if
	// it is unknown, describes the code that it generated. If PerfMap is nil or the path is
	// empty, there is none. trusted, if not nil, reports whether the file may be the
	// process's own.
	PerfMap func(pid int32) (path string, trusted func(fs.FileInfo) bool)
	// Style is how frames are printed.
	Style Style
	// Warn, if not nil, is called once for each file whose functions have no names, with
	// the reason.
	Warn func(error)
	// NoLines skips debugging information, which may take seconds to read. Callers then
	// have only a function.
	NoLines bool
	// MaxDebug bounds the bytes of debugging information that are held for all files; 0
	// means 1 GiB. Files that come later have only names of functions.
	MaxDebug uint64
	// MaxSymbols bounds the bytes of symbols that are held for all files; 0 means 4 GiB.
	// The last file loaded may exceed it up to its own limit. Files that come later have no
	// names.
	MaxSymbols uint64
	// Cache, if not nil, keeps answers from debugging information from one run to the next;
	// see [Resolver.Save]. It is not used together with Places.Fetch, which may provide
	// other files each time.
	Cache *linecache.Cache
}

// Style is how frames are printed.
type Style struct {
	// Lines prints source lines and inlined functions where there is debugging information.
	// Otherwise names come only from symbols.
	Lines bool
	// FullPath prints source files with their folders.
	FullPath bool
}

// maxSymbols is the default of Options.MaxSymbols, in bytes.
const maxSymbols = 4 << 30

// Stats counts reasons for missing names.
type Stats struct {
	Missing    int // files that could not be opened or read
	Mismatched int // files that are not the traced ones
	Unplaced   int // mappings that do not fit their file or exceed the limit
}

// Resolver names the addresses of a trace. It is not safe for concurrent use.
type Resolver struct {
	options   Options
	processes processes
	modules   modules
	cache     []slot
	version   uint32        // changes with any mapping; cached answers of another version are void
	machines  []elf.Machine // that the trace may come from; empty if unknown
	pid       int32         // of the first process that the trace names
	program   string        // that process's; empty if unknown
	began     int64         // when its recording began, in ns since 1970; 0 if unknown
	generated int           // addresses without a name in memory that no file is mapped to
	unmapped  int           // and where nothing is mapped
	frame     []lines.Frame // reused
	debug     uint64        // bytes of debugging information in memory, including its indexes
	symbols   uint64        // bytes of symbols in memory
	loaded    int           // bytes of units that were read
	maxLoaded int
	stats     Stats
}

// cacheBits is the binary logarithm of the number of cached addresses: a few times as many
// as a program with deep stacks uses.
const cacheBits = 15

// slot is a cached answer. Addresses with the same hash replace each other.
type slot struct {
	addr    uint64
	process *Process
	frame   *frame
	version uint32
}

// frame is what is known about an address. Addresses in one function share it.
type frame struct {
	name, module string // of the innermost function
	text         string
}

// unknown is the frame of an address that no mapping covers.
var unknown = &frame{text: frametext.Unknown}

// New returns a Resolver without mappings.
func New(o Options) *Resolver {
	r := &Resolver{
		options: o, modules: newModules(), cache: make([]slot, 1<<cacheBits), version: 1, maxLoaded: maxLoaded,
	}
	r.processes = newProcesses(r)
	return r
}

// Observe processes the next record of the trace: mappings, modules, functions, and what
// invalidates them. It ignores other kinds. It keeps nothing of rec.
func (r *Resolver) Observe(rec *trace.Record) {
	switch rec.Kind {
	case trace.KindHeader:
		r.machines = machinesOf(rec.Header.Arch)
		r.began = cmp.Or(r.began, rec.Header.WallTime)
	case trace.KindProcess:
		r.began = cmp.Or(r.began, rec.Process.WallTime)
		if r.pid == 0 {
			r.pid, r.program = rec.PID, strings.Clone(rec.Process.Program())
		}
	case trace.KindModule:
		r.describe(&rec.Module)
	case trace.KindMapping:
		r.processes.get(rec.PID).add(&rec.Mapping)
	case trace.KindUnmapping:
		r.processes.get(rec.PID).remove(rec.Mapping.Start, rec.Mapping.End)
	case trace.KindExec:
		r.processes.get(rec.PID).clear()
	case trace.KindFunction:
		f := &rec.Function
		r.processes.get(rec.PID).functions.Add(f.Name, f.Module, f.Start, f.End)
		r.version++
	}
}

// describe records which file a path stands for from now on. Mappings of that path from
// before its first description get it as well.
func (r *Resolver) describe(m *trace.Module) {
	mod := r.modules.get(m.Path, m.BuildID)
	if !mod.known {
		mod.known, mod.record = true, *m
		mod.record.Path, mod.record.BuildID = mod.path, mod.buildID
	}
	r.modules.latest[mod.path] = mod
	before := r.modules.all[moduleKey{path: mod.path}]
	if before == nil || before == mod || !before.waiting {
		return
	}
	before.waiting = false
	for _, p := range r.processes.known {
		for i := range p.maps {
			if at := &p.maps[i]; at.module == before {
				at.module, at.placed = mod, false
			}
		}
	}
	r.version++
}

// Process returns the address space of a process. Many traces name the process only in some
// records. If pid is 0 or unknown, the result is the process without an ID, or else the
// first one. It is valid until the next Observe.
func (r *Resolver) Process(pid int32) *Process { return r.processes.find(pid) }

// Name returns the function and file for a return address of the only process of the trace;
// see [Process.Name].
func (r *Resolver) Name(addr uint64) (name, module string, ok bool) {
	return r.Process(0).Name(addr)
}

// Function returns the function of a process that contains the call before a return
// address, as [Process.Name] does; "" if it is unknown.
func (r *Resolver) Function(pid int32, addr uint64) string {
	name, _, _ := r.Process(pid).Name(addr)
	return name
}

// Text returns the text for a return address of the only process of the trace; see
// [Process.Text].
func (r *Resolver) Text(addr uint64) string { return r.Process(0).Text(addr) }

// Program returns the name of the first process that the trace names, without its folder.
func (r *Resolver) Program() string { return r.program }

// Stats returns what was missing so far. Files are opened when an address in them is first
// looked up.
func (r *Resolver) Stats() Stats { return r.stats }

// cached returns the slot for the answer for an address.
func (r *Resolver) cached(addr uint64) *slot { return &r.cache[slotOf(addr)] }

// slotOf returns the number of an address's slot in a cache.
func slotOf(addr uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: spreads neighbours
	return addr * golden >> (64 - cacheBits)
}
