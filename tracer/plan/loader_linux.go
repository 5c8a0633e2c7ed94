package plan

import (
	"fmt"
	"path/filepath"
	"strings"

	"rtrace-bpf/tracer/process"
)

// notifier is the function that the dynamic loader calls before and after it changes its
// list of libraries. It is there for debuggers to put a breakpoint on.
const notifier = "_dl_debug_state"

// findLoader returns a probe on the notifier, which shows when a library is unmapped: the
// kernel's records report new mappings only. A static program has no notifier, and no probe.
func findLoader(t *process.Target) ([]Probe, error) {
	maps, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	seen := map[process.FileID]bool{}
	for _, m := range maps {
		id := process.FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}
		if m.Inode == 0 || seen[id] || !strings.HasPrefix(filepath.Base(m.Path), "ld") {
			continue
		}
		seen[id] = true
		f, path, err := t.Open(m)
		if err != nil || f == nil {
			continue
		}
		sym, ok := f.Defined(notifier)
		offset, inFile := f.FileOffset(sym.Addr)
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("close %s: %w", path, err)
		}
		if ok && inFile {
			return []Probe{{Function: notifier, Path: m.Path, File: path, Offset: offset, ID: id}}, nil
		}
	}
	return nil, nil
}
