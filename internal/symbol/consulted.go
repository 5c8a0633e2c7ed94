package symbol

import "os"

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
