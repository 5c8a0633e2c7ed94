package tracer

import (
	"fmt"
	"path/filepath"
	"strings"
)

// notifier is the function that the dynamic loader calls before and after it
// changes the list of libraries, for debuggers to put a breakpoint on.
const notifier = "_dl_debug_state"

// findLoader finds the notifier, by which the end of a mapping is noticed: the
// kernel tells of new mappings only. A static program has none.
func (p *Plan) findLoader() error {
	maps, err := p.target.mappings()
	if err != nil {
		return err
	}
	seen := map[fileID]bool{}
	for _, m := range maps {
		id := fileID{major: m.major, minor: m.minor, inode: m.inode}
		if m.inode == 0 || seen[id] || !strings.HasPrefix(filepath.Base(m.path), "ld") {
			continue
		}
		seen[id] = true
		f, path, err := p.target.open(m)
		if err != nil || f == nil {
			continue
		}
		sym, ok := f.Defined(notifier)
		offset, inFile := f.FileOffset(sym.Addr)
		if err := f.Close(); err != nil {
			return fmt.Errorf("close %s: %w", path, err)
		}
		if ok && inFile {
			p.debugger = []Probe{{Function: notifier, Path: m.path, File: path, Offset: offset, id: id}}
			return nil
		}
	}
	p.options.logf("no dynamic loader: unmapped libraries are noticed late")
	return nil
}
