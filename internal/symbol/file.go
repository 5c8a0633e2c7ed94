package symbol

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"rtrace-bpf/trace"
)

// ErrNotRegular reports that a name stands for something other than a regular file, such as
// a device or a pipe. Such files are not opened.
var ErrNotRegular = errors.New("not a regular file")

// maxCode is the most bytes of code that are read at once.
const maxCode = 1 << 24

// File is an ELF executable or shared object. Open reads its headers, Load its symbols.
// Several goroutines may call its methods.
type File struct {
	image   *image
	closer  io.Closer
	places  *Places
	path    string // on the traced machine; empty if unknown
	name    string // on this machine
	buildID string
	info    os.FileInfo // nil if it is not a file on disk

	once    sync.Once
	symbols *table
	debug   string
	err     error

	consulting sync.Mutex
	consulted  []Consulted

	exporting sync.Once
	exports   *table
}

// Segment is a part of the file that is loaded as code (PT_LOAD with PF_X).
type Segment struct {
	Offset   uint64 // in the file
	Addr     uint64 // before the load bias is added
	FileSize uint64 // bytes in the file
	MemSize  uint64 // bytes in memory, not less than FileSize
}

// Bias returns the load bias of a file with these segments, given that the file is mapped
// from start to end with offset as its first byte. If segments share a page of the file,
// the one that begins in the first page of the mapping decides.
func Bias(segments []Segment, start, end, offset uint64) uint64 {
	page := uint64(os.Getpagesize())
	for _, s := range segments {
		if s.Offset&^(page-1) == offset {
			return start - offset + s.Offset - s.Addr
		}
	}
	for _, s := range segments {
		if offset+(end-start) > s.Offset && offset < s.Offset+s.FileSize {
			return start - offset + s.Offset - s.Addr
		}
	}
	return start - offset
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
	return &File{image: img, buildID: img.buildID()}, nil
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
		return int64(f.image.size), 0
	}
	return f.info.Size(), f.info.ModTime().UnixNano()
}

// Type returns how the file is linked: elf.ET_EXEC at fixed addresses, elf.ET_DYN for any
// address.
func (f *File) Type() elf.Type { return f.image.typ }

// Fixed reports whether the file is linked at fixed addresses.
func (f *File) Fixed() bool { return f.image.typ == elf.ET_EXEC }

// Machine returns the instruction set.
func (f *File) Machine() elf.Machine { return f.image.machine }

// Entry returns the address where a program or the dynamic loader starts to run; 0 for
// files that have no entry point.
func (f *File) Entry() uint64 { return f.image.entry }

// Class returns the word size in bits, 32 or 64.
func (f *File) Class() int {
	if f.image.wide {
		return 64
	}
	return 32
}

// BuildID returns the GNU build ID in hexadecimal, or "" if there is none.
func (f *File) BuildID() string { return f.buildID }

// DebugFile returns the path of the separate debug file from which symbols were loaded, or
// "".
func (f *File) DebugFile() string {
	_ = f.Load()
	return f.debug
}

// Detached reports whether the file is a debug file. Such a file has the addresses of the
// code but not the code itself, so offsets and lengths in the file mean nothing.
func (f *File) Detached() bool {
	text := f.image.named(".text")
	return text != nil && text.typ == elf.SHT_NOBITS
}

// Segments returns the parts that are loaded as code, in the file's order.
func (f *File) Segments() []Segment {
	var code []Segment
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.code() {
			code = append(code, Segment{s.offset, s.addr, s.filesz, s.memsz})
		}
	}
	return code
}

// Base returns the lowest address at which the file is loaded, before the load bias is
// added and not rounded to a page, and the file offset there.
func (f *File) Base() (addr, offset uint64, ok bool) {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.typ == elf.PT_LOAD && (!ok || s.addr < addr) {
			addr, offset, ok = s.addr, s.offset, true
		}
	}
	return addr, offset, ok
}

// FileOffset returns the file offset of the byte that is loaded at addr.
func (f *File) FileOffset(addr uint64) (uint64, bool) {
	off, _, ok := f.image.offset(addr)
	return off, ok
}

// Addr returns the address at which the byte at the given file offset is loaded as code.
func (f *File) Addr(offset uint64) (uint64, bool) {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.code() && offset >= s.offset && offset-s.offset < s.filesz {
			return s.addr + (offset - s.offset), true
		}
	}
	return 0, false
}

// Code returns the n bytes that are loaded at addr, or fewer if the segment ends earlier.
// The caller owns them. The file must be open.
func (f *File) Code(addr, n uint64) ([]byte, error) {
	off, rest, ok := f.image.offset(addr)
	if !ok {
		return nil, fail(0, trace.ErrMalformed, fmt.Sprintf("nothing is loaded at %#x", addr))
	}
	return f.image.read(off, min(n, rest), maxCode, "code")
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
