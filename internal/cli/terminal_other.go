//go:build !linux

package cli

import "os"

// IsTerminal reports whether f is probably a terminal, by its file mode: any character
// device except the null device counts as one.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
