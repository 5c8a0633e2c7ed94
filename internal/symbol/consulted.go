package symbol

import (
	"os"
	"slices"
)

// Consulted is a file that was looked for because it might hold the symbols or the
// debugging information of an ELF file.
type Consulted struct {
	Name    string
	Size    int64 // bytes; -1 if there is none
	Changed int64 // time of the last change, in ns since 1970; 0 if there is none
}

// Consult returns the size and the time of the last change that a file has now.
func Consult(name string) Consulted {
	info, err := os.Stat(name)
	if err != nil {
		return Consulted{Name: name, Size: -1}
	}
	return Consulted{name, info.Size(), info.ModTime().UnixNano()}
}

// consult notes that a file is about to be opened.
func (f *File) consult(name string) {
	f.consulting.Lock()
	defer f.consulting.Unlock()
	if !slices.ContainsFunc(f.consulted, func(c Consulted) bool { return c.Name == name }) {
		f.consulted = append(f.consulted, Consult(name))
	}
}

// Consulted returns the files that were looked for so far. The caller owns the
// list.
func (f *File) Consulted() []Consulted {
	f.consulting.Lock()
	defer f.consulting.Unlock()
	return slices.Clone(f.consulted)
}

// Name returns the path under which the file was opened on this machine, or "" if it is not
// a file on disk.
func (f *File) Name() string {
	if f.info == nil {
		return ""
	}
	return f.name
}
