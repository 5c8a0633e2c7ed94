package symbol

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Places holds where files and their debug files are. The zero value means this machine. A
// Places must not change after it has opened a file.
type Places struct {
	// Root is put before the paths of files and of Debug: the folder of a copy of the
	// traced machine's files, or /proc/PID/root.
	Root string
	// Debug holds the folders of debug files. Each is looked for below Root and then
	// without Root. If Debug is empty, DebugDir is used.
	Debug []string
	// Fetch, if not nil, is called for a file that no folder has: the file with the given
	// build ID, or its debug file. It returns the path of a copy on this machine, or "".
	// The copy is used only if it has the build ID.
	Fetch func(buildID string, debug bool) string
}

// DebugDir is where distributions put debug files.
const DebugDir = "/usr/lib/debug"

// Open opens the ELF file of the given path below the root.
func (p *Places) Open(path string) (*File, error) {
	f, err := openFile(p.Root + path)
	if err != nil {
		return nil, err
	}
	f.places, f.path = p, path
	return f, nil
}

// openFile opens an ELF file on disk.
func openFile(name string) (*File, error) {
	f, size, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	file, err := New(f, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
	}
	file.closer, file.name = f, name
	if file.info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file, nil
}

// OpenBuildID opens the file with the given build ID, in hexadecimal. It looks in the
// folders of debug files, where .build-id/xx/yyyy is the file itself and
// .build-id/xx/yyyy.debug its debug file, and then calls Fetch. If only the debug file is
// found, that is returned (see [File.Detached]). The error is fs.ErrNotExist if neither is
// found.
func (p *Places) OpenBuildID(buildID string) (*File, error) {
	if len(buildID) <= 2 || strings.Trim(buildID, "0123456789abcdef") != "" {
		return nil, fs.ErrNotExist
	}
	for _, suffix := range [...]string{"", debugSuffix} {
		for _, name := range p.byBuildID(buildID, suffix) {
			if f := p.openAs(name, buildID); f != nil {
				return f, nil
			}
		}
		if p.Fetch != nil {
			if f := p.openAs(p.Fetch(buildID, suffix != ""), buildID); f != nil {
				return f, nil
			}
		}
	}
	return nil, fs.ErrNotExist
}

// openAs opens a file that was found by build ID, or returns nil.
func (p *Places) openAs(name, buildID string) *File {
	if name == "" {
		return nil
	}
	f, err := openFile(name)
	if err != nil {
		return nil
	}
	if f.buildID != buildID {
		f.Close()
		return nil
	}
	// Debug files are found by the build ID as well. The root is already part of the name.
	f.places, f.path = &Places{Debug: p.folders(), Fetch: p.Fetch}, name
	return f
}

// debugSuffix ends the names of debug files below .build-id.
const debugSuffix = ".debug"

// byBuildID returns the names that a file with a build ID may have.
func (p *Places) byBuildID(buildID, suffix string) (names []string) {
	for _, dir := range p.folders() {
		names = append(names, dir+"/.build-id/"+buildID[:2]+"/"+buildID[2:]+suffix)
	}
	return names
}

// folders returns the folders of debug files. This machine's folders may serve another root
// as well, because a debug file is used only if it belongs to the file.
func (p *Places) folders() []string {
	dirs := p.Debug
	if len(dirs) == 0 {
		dirs = []string{DebugDir}
	}
	if p.Root == "" {
		return dirs
	}
	all := make([]string, 0, 2*len(dirs))
	for _, dir := range dirs {
		all = append(all, p.Root+dir)
	}
	return append(all, dirs...)
}

// linked returns the names that the file that a debug link names may have.
func (p *Places) linked(dir, link string) (names []string) {
	roots := []string{p.Root, ""}
	for _, root := range slices.Compact(roots) {
		names = append(names, root+dir+"/"+link, root+dir+"/.debug/"+link)
	}
	for _, folder := range p.folders() {
		names = append(names, folder+dir+"/"+link)
	}
	return names
}
