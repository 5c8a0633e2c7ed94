package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// Limits on the code that is looked at.
const (
	maxFunction = 64 << 10 // bytes of a function
	maxText     = 64 << 20 // bytes of a code segment
	maxInternal = 8        // direct calls of free
)

// code is the machine code of a file with functions to probe.
type code struct {
	lib      *library
	number   int // index in Target.Texts
	machine  *process.Machine
	bias     uint64 // process.Mapping.Bias
	text     []byte // the code segment with the functions
	base     uint64 // address of text in the file
	slots    slots
	byAddr   map[uint64]string // names of the traced functions
	branches []site.Branch     // branches that lead into the traced functions
	free     uint64            // address of free, 0 if it is not traced

	index   *cfi.Index // see allFrames
	indexed bool       // index was set
}

// newCode reads the code segment with functions, and finds the branches that lead into
// them. There must be at least one function.
func newCode(m *process.Machine, lib *library, number int, functions []Function) (*code, error) {
	c := &code{lib: lib, number: number, machine: m, byAddr: map[uint64]string{}}
	var entries []uint64
	for _, f := range functions {
		c.byAddr[f.addr] = f.Name
		entries = append(entries, f.addr)
		if f.Name == "free" {
			c.free = f.addr
		}
	}
	for _, s := range lib.file.Segments() {
		if entries[0] < s.Addr || entries[0]-s.Addr >= s.FileSize {
			continue
		}
		text, err := lib.file.Code(s.Addr, min(s.FileSize, maxText))
		if err != nil {
			return nil, fmt.Errorf("read code of %s: %w", lib.mapping.Path, err)
		}
		c.base, c.text = s.Addr, text
	}
	var err error
	if c.slots, err = readSlots(lib.path); err != nil {
		return nil, err
	}
	info := process.FileInfo{Segments: lib.file.Segments()}
	c.bias = lib.mapping.Bias(info.Segments)
	c.branches = site.Branches(c.machine.Arch, c.text, c.base, entries)
	return c, nil
}

// sites returns the options for package site. It leaves out that the kernel may emulate
// nops: which ones depends on the kernel, and to treat them as single-stepped costs nothing
// if there is another site.
func (c *code) sites() site.Options {
	return site.Options{Arch: c.machine.Arch, GOT: c.lib.file.GOT()}
}

// body returns the code of a function, at most maxFunction bytes. If nothing has its size,
// it returns as many bytes as package site looks at.
func (c *code) body(fn *Function) ([]byte, error) {
	addr, size := fn.addr, fn.size
	if addr < c.base || addr-c.base >= uint64(len(c.text)) {
		return nil, fmt.Errorf("%s of %s at %#x is in no code segment", fn.Name, c.lib.mapping.Path, addr)
	}
	rest := c.text[addr-c.base:]
	if size == 0 {
		size = site.Window
		if start, end, ok := c.around(addr); ok && start == addr {
			size = end - start
		}
	}
	return rest[:min(size, maxFunction, uint64(len(rest)))], nil
}

// target returns the name of the traced function at addr, or of the one that the PLT stub
// at addr leads to.
func (c *code) target(addr uint64) (string, bool) {
	if name, ok := c.byAddr[addr]; ok {
		return name, true
	}
	if addr < c.base || addr-c.base >= uint64(len(c.text)) {
		return "", false
	}
	rest := c.text[addr-c.base:]
	name, ok := c.through(addr, rest[:min(site.StubSize, len(rest))])
	return c.traced(name, ok)
}

// slot returns the name of the traced function that the GOT's pointer at addr leads to.
func (c *code) slot(addr uint64) (string, bool) {
	name, ok := c.slots[addr]
	return c.traced(name, ok)
}

// traced returns the name of the traced function that has the address of the function
// name. ok is passed on from the caller's lookup.
func (c *code) traced(name string, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	sym, ok := c.lib.function(name) // name may be an alias
	if !ok {
		return "", false
	}
	name, ok = c.byAddr[sym.Addr]
	return name, ok
}

// extent returns the addresses of the code in the process.
func (c *code) extent() process.Extent {
	return process.Extent{Start: c.bias + c.base, End: c.bias + c.base + uint64(len(c.text))}
}

// probe returns a probe at an address of the file. ok is false if the file has no such
// address.
func (c *code) probe(function string, addr uint64) (Probe, bool) {
	offset, ok := c.lib.file.FileOffset(addr)
	return Probe{
		Function: function, Path: c.lib.mapping.Path, File: c.lib.path, Offset: offset,
		ID: c.lib.id(), text: c.number, Distance: c.distance(addr),
	}, ok
}

// distance returns the bytes from the start of the page where the code begins to an address
// of the file. The same distance holds wherever the file is mapped.
func (c *code) distance(addr uint64) uint64 {
	return addr - c.base&^(uint64(os.Getpagesize())-1)
}

// internal returns probes on the calls of free that the allocator makes for itself. In
// glibc, code that frees for the program calls free through the PLT, so that it can be
// interposed. Direct calls are one inside realloc, and those that empty a thread's cache at
// its end, of blocks that the program has already freed (docs/design/decisions.md, 14).
// Other C libraries and static programs use direct calls everywhere, so for them internal
// returns none.
func (c *code) internal() []Probe {
	base := filepath.Base(c.lib.mapping.Path)
	if c.free == 0 || !(strings.HasPrefix(base, "libc.so.") || strings.HasPrefix(base, "libc-2")) {
		return nil
	}
	returns, _ := site.InternalCallers(c.machine.Arch, c.text, c.base, c.free)
	if len(returns) > maxInternal {
		return nil // more than any known glibc has
	}
	var probes []Probe
	for _, addr := range returns {
		if probe, ok := c.probe("free", addr-c.machine.Call); ok {
			probes = append(probes, probe)
		}
	}
	return probes
}
