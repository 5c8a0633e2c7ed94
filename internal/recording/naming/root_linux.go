package naming

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// Root is the file system that a process sees. It remains readable when the process, and
// its container, have ended.
type Root struct {
	dir    *os.File // nil if it could not be opened
	mounts *os.File // keeps what is mounted below dir; nil if it could not be opened
}

// OpenRoot opens the root directory of a process, and its mount namespace.
func OpenRoot(pid int) *Root {
	// An error shows again when the process is traced.
	dir, _ := os.OpenFile(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	mounts, _ := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return &Root{dir, mounts}
}

// Close releases the file system.
func (r *Root) Close() {
	for _, f := range []*os.File{r.dir, r.mounts} {
		if f != nil {
			f.Close()
		}
	}
}

// open opens the file of a module, or else the file with the same path that this program
// sees; the resolver checks that it is the same one.
func (r *Root) open(m trace.Module) (*symbol.File, error) {
	if r.dir != nil {
		if f, err := symbol.OpenIn(fmt.Sprintf("/proc/self/fd/%d", r.dir.Fd()), m.Path); err == nil {
			return f, nil
		}
	}
	return symbol.Open(m.Path)
}

// Limits of the debugging information and of the symbols that are kept in memory, in
// bytes: the machine needs its memory for other things, and hostile files may claim any
// amount.
const (
	maxDebug   = 512 << 20
	maxSymbols = 128 << 20
)

// withLines returns a resolver of functions and lines.
func (r *Root) withLines() *resolve.Resolver {
	return resolve.New(resolve.Options{Open: r.open, MaxDebug: maxDebug, MaxSymbols: maxSymbols})
}

// named returns a resolver whose texts have lines and inlined functions.
func (r *Root) named() *resolve.Resolver {
	return resolve.New(resolve.Options{
		Open: r.open, MaxDebug: maxDebug, MaxSymbols: maxSymbols, Style: resolve.Style{Lines: true, FullPath: true},
	})
}

// withoutLines returns a resolver of functions.
func (r *Root) withoutLines() *resolve.Resolver {
	return resolve.New(resolve.Options{Open: r.open, MaxSymbols: maxSymbols, NoLines: true})
}
