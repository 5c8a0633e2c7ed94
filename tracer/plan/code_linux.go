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

// maxInternal is the most direct calls of free.
const maxInternal = 8

// code is the machine code of a file with functions to probe.
type code struct {
	lib      *library
	number   int // index in Target.Texts
	machine  *process.Machine
	bias     uint64  // process.Mapping.Bias
	text     segment // the code segment with the functions
	bounds   bounds
	links    links
	direct   *site.Library // the direct branches of text; nil if unread made this
	branches []site.Branch // those that lead into the traced functions
	free     uint64        // address of free, 0 if it is not traced
	paths    struct {      // see pathImage
		image *pathImage
		err   error
	}
}

// unread returns the code of a file of which nothing was read. read reads a segment.
func unread(m *process.Machine, lib *library) *code {
	return &code{lib: lib, machine: m, bounds: bounds{file: lib.file}}
}

// newCode reads the code segment with functions, and finds the branches that lead into
// them. There must be at least one function.
func newCode(m *process.Machine, lib *library, number int, functions []Function) (*code, error) {
	c := unread(m, lib)
	c.number = number
	c.links = links{lib: lib, names: map[uint64]string{}, text: &c.text, options: c.sites()}
	var entries []uint64
	for _, f := range functions {
		addr := f.symbol.Addr
		c.links.names[addr] = f.Name
		entries = append(entries, addr)
		if f.Name == "free" {
			c.free = addr
		}
	}
	var err error
	if c.text, _, err = readSegment(lib, entries[0]); err != nil {
		return nil, err
	}
	if c.links.slots, err = readSlots(lib.path); err != nil {
		return nil, err
	}
	c.bias = lib.mapping.Bias(lib.file.Segments())
	c.direct = site.NewLibrary(m.Arch, c.text.bytes, c.text.base)
	c.branches = c.direct.Branches(entries)
	return c, nil
}

// read sets c.text to the code segment that contains addr.
func (c *code) read(addr uint64) error {
	if c.text.has(addr) {
		return nil
	}
	text, ok, err := readSegment(c.lib, addr)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s has no code at %#x", c.lib.mapping.Path, addr)
	}
	c.text = text
	return nil
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
	addr, size := fn.symbol.Addr, fn.symbol.Size
	if !c.text.has(addr) {
		return nil, fmt.Errorf("%s of %s at %#x is in no code segment", fn.Name, c.lib.mapping.Path, addr)
	}
	if size == 0 {
		size = site.Window
		if start, end, ok := c.bounds.around(addr); ok && start == addr {
			size = end - start
		}
	}
	return c.text.from(addr, min(size, maxFunction)), nil
}

// tracedFrames returns the call frame information of the file, or nil if it lacks a traced
// function.
func (c *code) tracedFrames() *cfi.Index {
	index := c.bounds.index()
	if index == nil {
		return nil
	}
	for addr := range c.links.names {
		if _, ok := index.Find(addr); !ok {
			return nil
		}
	}
	return index
}

// extent returns the addresses of the code in the process.
func (c *code) extent() process.Extent {
	return process.Extent{Start: c.bias + c.text.base, End: c.bias + c.text.end()}
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
	return addr - c.text.base&^(uint64(os.Getpagesize())-1)
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
	returns, _ := c.direct.InternalCallers(c.free)
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
