package tracer

import (
	"bytes"
	"debug/elf"
	"maps"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/internal/unwind/reference"
)

// copies unwinds copies of stacks, by all that the files say, in the tracer.
type copies struct {
	target  *target
	machine elf.Machine
	depth   int
	pointer bool // frame-pointer steps are allowed
	files   map[tableKey]*cfi.Index
	modules map[moduleKey]reference.Module
	images  map[moduleKey][]byte // of the kernel's library
	words   map[uint64]codeWord  // by address
	code    *mappings            // what is mapped, as events pass by
}

func newCopies(t *target, o *Options, code *mappings) *copies {
	c := &copies{
		target: t, machine: t.machine.elf, depth: o.frames(), pointer: o.Unwind == UnwindAuto, code: code,
		files: map[tableKey]*cfi.Index{}, modules: map[moduleKey]reference.Module{},
		images: map[moduleKey][]byte{}, words: map[uint64]codeWord{},
	}
	c.keepImages()
	return c
}

// keepImages reads the kernel's library, if it is mapped.
func (c *copies) keepImages() {
	all, err := c.target.mappings()
	if err != nil {
		return // the process has ended
	}
	for _, m := range all {
		c.keepImage(m)
	}
}

// keepImage reads the kernel's library at once: it is in no file, so it is gone with
// the process. Signal handlers of arm64 and of 32-bit programs return to it.
func (c *copies) keepImage(m mapping) {
	if m.path != vdso {
		return
	}
	if image, err := c.target.image(m); err == nil {
		c.images[m.key()] = image
	}
}

// open opens what is mapped at m. It returns nil for code that is in no file.
func (c *copies) open(m mapping) (*symbol.File, error) {
	if image := c.images[m.key()]; image != nil {
		return symbol.New(bytes.NewReader(image), int64(len(image)))
	}
	return c.target.openCode(m)
}

// unwind returns the stack of a copy.
func (c *copies) unwind(raw *rawStack) reference.Stack {
	var memory reference.Layers
	for _, r := range raw.ranges {
		memory = append(memory, reference.Raw{Addr: r.start, Data: r.data})
	}
	s := reference.Unwind(raw.regs, append(memory, codeWords{c}), c, reference.Options{
		Machine: c.machine, Depth: c.depth, FramePointer: c.pointer, AddressBits: c.target.addressBits,
	})
	c.cut(&s)
	return s
}

// cut ends a stack before a return probe's stub, of which only the kernel knows
// what it stands for, and before what is no code.
func (c *copies) cut(s *reference.Stack) {
	for i, pc := range s.Frames {
		if m := c.code.at(pc); i > 0 && (m == nil || m.path == trampolines) {
			s.Frames, s.End = s.Frames[:i], reference.Unmapped
			return
		}
	}
}

// Find implements reference.Modules.
func (c *copies) Find(pc uint64) (reference.Module, bool) {
	m := c.code.at(pc)
	if m == nil || m.path == trampolines {
		return reference.Module{}, false
	}
	key := m.key()
	module, ok := c.modules[key]
	if !ok {
		module = c.module(*m)
		c.modules[key] = module
	}
	return module, true
}

// module reads the tables of a mapped file. A file whose tables cannot be read
// has none.
func (c *copies) module(m mapping) reference.Module {
	f, err := c.open(m)
	if err != nil || f == nil {
		return reference.Module{}
	}
	defer f.Close()
	key := keyOf(m, f)
	index, ok := c.files[key]
	if !ok {
		if sections, err := cfi.Sections(f); err == nil {
			index, _ = cfi.NewIndex(sections...)
		}
		c.files[key] = index
	}
	return reference.Module{Index: index, Bias: m.bias(f.Segments())}
}

// mapped says that m appeared: what was known of that place is void.
func (c *copies) mapped(m mapping) {
	maps.DeleteFunc(c.modules, func(k moduleKey, _ reference.Module) bool { return m.overlaps(k.place()) })
	maps.DeleteFunc(c.images, func(k moduleKey, _ []byte) bool { return m.overlaps(k.place()) })
	clear(c.words)
	c.keepImage(m)
}

// forget drops what is known of a process that is another program now.
func (c *copies) forget() {
	clear(c.files)
	clear(c.modules)
	clear(c.images)
	clear(c.words)
	c.keepImages()
}

// late returns the stack of a copy as the programs would have.
func (c *copies) late(raw *rawStack) *stackDef {
	s := c.unwind(raw)
	return &stackDef{late: true, hash: raw.hash, frames: s.Frames, framePointer: s.FramePointer, end: map[reference.End]probeStackEnd{
		reference.Complete: probeStackEndSTACK_COMPLETE, reference.Truncated: probeStackEndSTACK_TRUNCATED,
		reference.NoRule: probeStackEndSTACK_NO_RULE, reference.BadRule: probeStackEndSTACK_NO_RULE,
		reference.BadFrame: probeStackEndSTACK_BAD_FRAME, reference.Unmapped: probeStackEndSTACK_UNMAPPED,
		reference.Unreadable: probeStackEndSTACK_UNREADABLE,
	}[s.End]}
}
