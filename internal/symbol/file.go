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

// ErrNotRegular says that a name leads to something that is no regular file,
// as a device or a pipe; those are not opened.
var ErrNotRegular = errors.New("not a regular file")

// maxCode is the longest piece of code that is read at once, in bytes.
const maxCode = 1 << 24

// File is an ELF executable or shared object. Headers are read when it is
// opened, symbols when they are first asked for. Its methods may be called by
// several goroutines.
type File struct {
	image   *image
	closer  io.Closer
	places  *Places
	path    string // as the traced machine names it; empty if unknown
	name    string // on this machine
	buildID string
	info    os.FileInfo // nil if it is no file on disk

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

// Bias returns what was added to the addresses of a file with these segments when the
// bytes of it from offset on were mapped from start to end. Segments may share a page of
// the file, so the one that begins in the mapping's first page comes first.
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
	Size uint64 // bytes; 0 if the file does not say
	// IFunc says that the code at Addr chooses the function's implementation
	// (STT_GNU_IFUNC) and is not the function.
	IFunc bool
	// Global says that the symbol is visible to other files or was before the
	// file was linked.
	Global bool
}

// Open opens the ELF file of the given path.
func Open(path string) (*File, error) { return OpenIn("", path) }

// OpenIn opens the ELF file that has the given path in a system whose root
// folder is root: a copy of the traced machine's files, or /proc/PID/root.
// Debug files are looked for there as well.
func OpenIn(root, path string) (*File, error) { return (&Places{Root: root}).Open(path) }

// openRegular opens a file that is neither a device nor a pipe. What a name leads
// to may change at any time, so it is looked at once it is open.
func openRegular(path string) (*os.File, int64, error) {
	f, info, err := openWith(path, 0)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// openWith is openRegular with further flags.
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

// New reads an ELF file of size bytes from r, which must stay readable until
// the symbols are loaded. No debug file is looked for.
func New(r io.ReaderAt, size int64) (*File, error) {
	img, err := open(r, size)
	if err != nil {
		return nil, err
	}
	return &File{image: img, buildID: img.buildID()}, nil
}

// Load reads the symbols, if that did not happen before. With an error, those
// that could be read are there.
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

// Close closes the underlying file. Symbols that are loaded stay usable.
func (f *File) Close() error {
	f.once.Do(func() { f.symbols = new(table) })
	f.exporting.Do(func() { f.exports = new(table) })
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Held returns how many bytes of memory the symbols take.
func (f *File) Held() uint64 {
	if f.symbols == nil {
		return 0
	}
	return f.symbols.held()
}

// Stamp returns the size in bytes and the time of the last change, in ns since
// 1970, by which a file is told from another one that took its inode number.
func (f *File) Stamp() (size, changed int64) {
	if f.info == nil {
		return int64(f.image.size), 0
	}
	return f.info.Size(), f.info.ModTime().UnixNano()
}

// Type returns how the file is linked: elf.ET_EXEC at fixed addresses,
// elf.ET_DYN anywhere.
func (f *File) Type() elf.Type { return f.image.typ }

// Fixed says whether the file is linked at fixed addresses.
func (f *File) Fixed() bool { return f.image.typ == elf.ET_EXEC }

// Machine returns the instruction set.
func (f *File) Machine() elf.Machine { return f.image.machine }

// Entry returns the address where a program, or the dynamic loader, begins; 0 for files
// that do not begin anywhere.
func (f *File) Entry() uint64 { return f.image.entry }

// Class returns the word size in bits, 32 or 64.
func (f *File) Class() int {
	if f.image.wide {
		return 64
	}
	return 32
}

// BuildID returns the GNU build-id in hexadecimal, or nothing if there is none.
func (f *File) BuildID() string { return f.buildID }

// DebugFile returns the path of the separate debug file that symbols were
// loaded from, or nothing.
func (f *File) DebugFile() string {
	_ = f.Load()
	return f.debug
}

// Detached says that the file is a debug file, which has the addresses of the
// code but not the code itself: offsets and lengths in the file mean nothing.
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

// Base returns the lowest address that the file is loaded at, before the load
// bias is added and not rounded to a page, and the file offset there.
func (f *File) Base() (addr, offset uint64, ok bool) {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.typ == elf.PT_LOAD && (!ok || s.addr < addr) {
			addr, offset, ok = s.addr, s.offset, true
		}
	}
	return addr, offset, ok
}

// FileOffset returns where the byte that is loaded at addr is in the file.
func (f *File) FileOffset(addr uint64) (uint64, bool) {
	off, _, ok := f.image.offset(addr)
	return off, ok
}

// Addr returns the address at which the byte at the given file offset is
// loaded as code.
func (f *File) Addr(offset uint64) (uint64, bool) {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.code() && offset >= s.offset && offset-s.offset < s.filesz {
			return s.addr + (offset - s.offset), true
		}
	}
	return 0, false
}

// Code returns the n bytes that are loaded at addr, or fewer if the segment
// ends before. The caller owns them. The file must not be closed.
func (f *File) Code(addr, n uint64) ([]byte, error) {
	off, rest, ok := f.image.offset(addr)
	if !ok {
		return nil, fail(0, trace.ErrMalformed, fmt.Sprintf("nothing is loaded at %#x", addr))
	}
	return f.image.read(off, min(n, rest), maxCode, "code")
}

// Find returns the number of the function that holds addr, or -1. The number
// is good for At.
func (f *File) Find(addr uint64) int {
	_ = f.Load()
	return f.symbols.find(addr)
}

// At returns the function with a number that Find returned.
func (f *File) At(i int) Symbol { return f.symbols.symbol(i) }

// Lookup returns the function that holds addr.
//
// A function with a size holds that many bytes; one without those up to the
// next. Untyped symbols in code, as hand-written assembly has them, hold what
// no function does. Of several names at one address the answer is always the
// same: that of a visible symbol rather than a local one, of the version that
// new programs get, with the fewest leading underscores, global rather than
// weak, the shortest, the first in the order of bytes. So glibc's
// __libc_malloc is malloc.
func (f *File) Lookup(addr uint64) (Symbol, bool) {
	i := f.Find(addr)
	if i < 0 {
		return Symbol{}, false
	}
	return f.At(i), true
}

// Defined returns the function with the given name: the version that new
// programs get if there are several, and a local one only if no other has the
// name.
func (f *File) Defined(name string) (Symbol, bool) {
	_ = f.Load()
	return symbolNamed(f.symbols, name)
}

// Aliases returns all function symbols whose address is addr, the one that
// Lookup prefers first. An IFUNC stays one under all its names.
func (f *File) Aliases(addr uint64) []Symbol {
	_ = f.Load()
	from, to := f.symbols.at(addr)
	var all []Symbol
	for i := from; i < to; i++ {
		all = append(all, f.At(i))
	}
	return all
}

// IFunc says whether a symbol at addr is an IFUNC, so that the code there
// chooses an implementation and is not the function.
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

// Functions returns how many function symbols are known, all names counted.
func (f *File) Functions() int {
	_ = f.Load()
	return len(f.symbols.entries)
}
