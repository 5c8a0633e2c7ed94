package resolve

import (
	"cmp"
	"errors"
	"strings"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/linecache"
	"rtrace-bpf/internal/symbol/lines"
)

// maxDebug is the default of Options.MaxDebug, in bytes.
const maxDebug = 1 << 30

// maxLoaded bounds the bytes of units that were read from the debugging information of all
// files. The file in use is exempt; it has a limit of its own.
const maxLoaded = 256 << 20

// debugging is the debugging information of a module.
type debugging struct {
	lines  *lines.Table // nil if there is none
	looked bool         // lines were looked for
	file   *symbol.File // of lines, closed; it finds further files
	cached *linecache.Entry
	asked  bool // the cache was asked
}

// save writes what was found to the cache, if there is one.
func (d *debugging) save() error {
	if d.cached != nil && d.file != nil {
		d.cached.Consult(d.file.Consulted())
	}
	return d.cached.Save()
}

// frames appends the functions that are active at an address of a file, the innermost
// first: with lines where there is debugging information, else the symbol there.
func (r *Resolver) frames(dst []lines.Frame, m *module, f *symbol.File, at uint64) []lines.Frame {
	dst, ok := r.kept(m, f).Append(dst, at)
	if ok {
		return dst
	}
	d := &m.debug
	if !d.looked {
		d.looked = true
		if !r.options.NoLines {
			r.readLines(m, f)
		}
	}
	s, known := f.Lookup(at)
	if d.lines != nil {
		n := len(dst)
		before := d.lines.Loaded()
		dst = d.lines.AppendFrames(dst, at)
		if r.loaded += d.lines.Loaded() - before; r.loaded > r.maxLoaded {
			r.forget(m)
		}
		if len(dst) > n {
			if known {
				preferred(&dst[len(dst)-1], f, &s)
			}
			d.cached.Add(at, dst[n:])
			return dst
		}
		d.cached.Add(at, []lines.Frame{{Function: s.Name}})
	}
	return append(dst, lines.Frame{Function: s.Name})
}

// kept returns what the cache holds for a file, or nil if there is no cache.
func (r *Resolver) kept(m *module, f *symbol.File) *linecache.Entry {
	d := &m.debug
	if d.asked {
		return d.cached
	}
	d.asked = true
	if o := &r.options; o.Cache != nil && o.Fetch == nil && o.Open == nil && !o.NoLines {
		d.cached = o.Cache.Load(f, strings.Join(append([]string{o.Root}, o.Debug...), "\x00"))
		d.cached.Consult(f.Consulted())
	}
	return d.cached
}

// Save writes what was found to the cache, for the next run. The Resolver can still be
// used. Results do not depend on the cache: after an error, the next run is merely not
// faster.
func (r *Resolver) Save() error {
	var all error
	for _, m := range r.modules.all {
		all = errors.Join(all, m.debug.save())
	}
	return all
}

// preferred replaces the name of a function by the preferred one of its symbols' names, if
// the debugging information has another of them.
func preferred(frame *lines.Frame, f *symbol.File, s *symbol.Symbol) {
	if frame.Inlined || frame.Function == s.Name {
		return
	}
	for _, alias := range f.Aliases(s.Addr) {
		if alias.Name == frame.Function {
			frame.Function = s.Name
			return
		}
	}
}

// readLines reads the debugging information of a module. It opens the file again, because
// most files are only needed for symbols.
func (r *Resolver) readLines(m *module, f *symbol.File) {
	limit := cmp.Or(r.options.MaxDebug, maxDebug)
	if r.debug >= limit {
		return
	}
	again, err := r.find(m)
	if err != nil {
		return
	}
	defer again.Close()
	size, changed := f.Stamp()
	if s, c := again.Stamp(); s != size || c != changed || again.BuildID() != f.BuildID() {
		return // the file was replaced in the meantime
	}
	info, err := lines.Read(again, limit-r.debug)
	if err != nil {
		return
	}
	m.debug.lines = lines.New(info, f)
	m.debug.file = again
	r.debug += m.debug.lines.Size()
}

// forget drops what was read of the debugging information of other modules.
func (r *Resolver) forget(but *module) {
	for _, m := range r.modules.all {
		if m != but && m.debug.lines != nil {
			m.debug.lines.Forget()
		}
	}
	r.loaded = but.debug.lines.Loaded()
}
