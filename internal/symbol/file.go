package symbol

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// ErrNotRegular reports that a name stands for something other than a regular file, such as
// a device or a pipe. Such files are not opened.
var ErrNotRegular = errors.New("not a regular file")

// File is an ELF executable or shared object. Open reads its headers, Load its symbols.
// Several goroutines may call its methods.
type File struct {
	*image
	companions
	closer io.Closer
	info   os.FileInfo // nil if it is not a file on disk

	once    sync.Once
	symbols *table
	debug   string
	err     error

	exporting sync.Once
	exports   *table
}

// Symbol is a function.
type Symbol struct {
	Name string // without a version suffix, not demangled
	Addr uint64
	Size uint64 // bytes; 0 if unknown
	// IFunc reports that the code at Addr chooses the implementation of the function
	// (STT_GNU_IFUNC) and is not the function itself.
	IFunc bool
	// Global reports that the symbol is visible to other files, or was before the file was
	// linked.
	Global bool
}

// Open opens the ELF file of the given path.
func Open(path string) (*File, error) { return OpenIn("", path) }

// OpenIn opens the ELF file that has the given path in a system whose root folder is root:
// a copy of the traced machine's files, or /proc/PID/root. Debug files are looked for there
// as well.
func OpenIn(root, path string) (*File, error) { return (&Places{Root: root}).Open(path) }

// openRegular opens a regular file. It checks the kind of the file after it has opened it,
// because the file that a name stands for may change at any time.
func openRegular(path string) (*os.File, int64, error) {
	f, info, err := openWith(path, 0)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// openWith is openRegular with additional flags for open.
func openWith(path string, flags int) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unblocked|flags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// New reads an ELF file of size bytes from r, which must stay readable until the symbols
// are loaded. New looks for no debug file.
func New(r io.ReaderAt, size int64) (*File, error) {
	img, err := open(r, size)
	if err != nil {
		return nil, err
	}
	return &File{image: img, companions: companions{main: img, buildID: buildID(img)}}, nil
}

// Load reads the symbols, unless it has done so before. If it returns an error, the symbols
// that could be read are available.
func (f *File) Load() error {
	f.once.Do(f.load)
	return f.err
}

func (f *File) load() {
	b := newBuilder(f.image)
	b.add(f.image)
	f.err = b.err
	if debug := f.openDebug(true); debug != nil {
		b.add(debug.image)
		f.err = errors.Join(b.err, debug.closer.Close())
		f.debug = debug.path
	} else if small := f.debugData(); small != nil {
		b.add(small)
		f.err = b.err
	}
	f.symbols = b.finish()
}

// Close closes the underlying file. Symbols that were loaded stay available.
func (f *File) Close() error {
	f.once.Do(func() { f.symbols = new(table) })
	f.exporting.Do(func() { f.exports = new(table) })
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Held returns how many bytes of memory the symbols occupy.
func (f *File) Held() uint64 {
	if f.symbols == nil {
		return 0
	}
	return f.symbols.held()
}

// Stamp returns the size in bytes and the time of the last change, in ns since 1970. They
// distinguish the file from a later one with the same inode number.
func (f *File) Stamp() (size, changed int64) {
	if f.info == nil {
		return int64(f.size), 0
	}
	return f.info.Size(), f.info.ModTime().UnixNano()
}

// DebugFile returns the path of the separate debug file from which symbols were loaded, or
// "".
func (f *File) DebugFile() string {
	_ = f.Load()
	return f.debug
}

// Find returns the number of the function that contains addr, for use with At, or -1.
func (f *File) Find(addr uint64) int {
	_ = f.Load()
	return f.symbols.find(addr)
}

// At returns the function with a number that Find returned.
func (f *File) At(i int) Symbol { return f.symbols.symbol(i) }

// Lookup returns the function that contains addr.
//
// A function with a size contains that many bytes; one without a size contains the bytes up
// to the next function. Untyped symbols in code, as in hand-written assembly, contain what
// belongs to no function. If several names have one address, the same one is always
// returned: a visible symbol before a local one, then the version that new programs get,
// then the fewest leading underscores, global before weak, the shortest, and the first in
// byte order. So glibc's __libc_malloc is returned as malloc.
func (f *File) Lookup(addr uint64) (Symbol, bool) {
	i := f.Find(addr)
	if i < 0 {
		return Symbol{}, false
	}
	return f.At(i), true
}

// Defined returns the function with the given name. If there are several, it returns the
// version that new programs get. It returns a local function only if no other has the name.
func (f *File) Defined(name string) (Symbol, bool) {
	_ = f.Load()
	return symbolNamed(f.symbols, name)
}

// Aliases returns all function symbols at addr, starting with the one that Lookup prefers.
// An IFUNC is one under each of its names.
func (f *File) Aliases(addr uint64) []Symbol {
	_ = f.Load()
	from, to := f.symbols.at(addr)
	var all []Symbol
	for i := from; i < to; i++ {
		all = append(all, f.At(i))
	}
	return all
}

// IFunc reports whether a symbol at addr is an IFUNC: the code there chooses an
// implementation and is not the function itself.
func (f *File) IFunc(addr uint64) bool {
	_ = f.Load()
	from, to := f.symbols.at(addr)
	for _, e := range f.symbols.entries[from:to] {
		if e.flags&flagIFunc != 0 {
			return true
		}
	}
	return false
}

// Functions returns the number of function symbols, counting every name.
func (f *File) Functions() int {
	_ = f.Load()
	return len(f.symbols.entries)
}
