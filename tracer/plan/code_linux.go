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

// Bounds on the code that is looked at.
const (
	maxFunction = 64 << 10
	maxText     = 64 << 20
	maxInternal = 8 // direct calls of free
)

// code is the machine code of an allocator's library.
type code struct {
	lib      *library
	number   int // of target.texts
	machine  *process.Machine
	bias     uint64 // of the library in the process
	text     []byte // the code segment with the allocator
	base     uint64 // address of text in the file
	slots    slots
	byAddr   map[uint64]string // traced functions
	branches []site.Branch     // that lead into them
	free     uint64            // address of free, 0 if it is not traced

	index   *cfi.Index // of allFrames
	indexed bool
}

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

// sites describes the machine to package site. Nops are not counted on: which of
// them are emulated depends on the kernel, and taking one for single-stepped costs
// nothing where another site exists.
func (c *code) sites() site.Options {
	return site.Options{Arch: c.machine.Arch, GOT: c.lib.file.GOT()}
}

// body returns the code of a function.
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

// target names the traced function at addr or behind the PLT stub at addr.
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

// slot names the traced function that the pointer at addr leads to.
func (c *code) slot(addr uint64) (string, bool) {
	name, ok := c.slots[addr]
	return c.traced(name, ok)
}

func (c *code) traced(name string, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	sym, ok := c.lib.function(name) // perhaps an alias
	if !ok {
		return "", false
	}
	name, ok = c.byAddr[sym.Addr]
	return name, ok
}

// extent returns where the process has the code.
func (c *code) extent() process.Extent {
	return process.Extent{Start: c.bias + c.base, End: c.bias + c.base + uint64(len(c.text))}
}

// probe describes a probe at an address of the file. It reports false if that is
// not in there.
func (c *code) probe(function string, addr uint64) (Probe, bool) {
	offset, ok := c.lib.file.FileOffset(addr)
	return Probe{
		Function: function, Path: c.lib.mapping.Path, File: c.lib.path, Offset: offset,
		ID: c.lib.id(), text: c.number, Distance: c.distance(addr),
	}, ok
}

// distance returns how far an address of the file is from the start of the page
// where the code begins, wherever that is mapped.
func (c *code) distance(addr uint64) uint64 {
	return addr - c.base&^(uint64(os.Getpagesize())-1)
}

// internal returns the calls of free that the allocator makes for itself. In
// glibc whatever frees on behalf of the program goes through the PLT, so that
// it can be interposed; the direct calls are those that empty a thread's cache
// at its end, of blocks that the program has freed already, and one inside
// realloc (docs/design/decisions.md, 14). Other C libraries and static programs are
// linked with direct calls everywhere, so a direct call proves nothing there.
func (c *code) internal() []Probe {
	base := filepath.Base(c.lib.mapping.Path)
	if c.free == 0 || !(strings.HasPrefix(base, "libc.so.") || strings.HasPrefix(base, "libc-2")) {
		return nil
	}
	returns, _ := site.InternalCallers(c.machine.Arch, c.text, c.base, c.free)
	if len(returns) > maxInternal {
		return nil // not what is known of glibc
	}
	var probes []Probe
	for _, addr := range returns {
		if probe, ok := c.probe("free", addr-c.machine.Call); ok {
			probes = append(probes, probe)
		}
	}
	return probes
}
