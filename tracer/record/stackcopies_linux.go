package record

import (
	"bytes"
	"debug/elf"
	"maps"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/tables"
)

// copies unwinds stack copies in the tracer, with all unwind information in the files.
type copies struct {
	target  *process.Target
	machine elf.Machine
	depth   int
	pointer bool // frame-pointer steps are allowed
	files   map[tables.TableKey]*cfi.Index
	modules map[process.ModuleKey]reference.Module
	images  map[process.ModuleKey][]byte // images of the kernel's library (vDSO)
	words   map[uint64]codeWord          // by address
	code    *mappings                    // the mappings at the current place in the order of events
}

func newCopies(t *process.Target, o *plan.Options, code *mappings) *copies {
	c := &copies{
		target: t, machine: t.Machine.ELF, depth: o.Frames(), pointer: o.Unwind == plan.UnwindAuto, code: code,
		files: map[tables.TableKey]*cfi.Index{}, modules: map[process.ModuleKey]reference.Module{},
		images: map[process.ModuleKey][]byte{}, words: map[uint64]codeWord{},
	}
	c.keepImages()
	return c
}

// keepImages reads the kernel's library, if it is mapped.
func (c *copies) keepImages() {
	all, err := c.target.Mappings()
	if err != nil {
		return // the process has ended
	}
	for _, m := range all {
		c.keepImage(m)
	}
}

// keepImage reads the kernel's library at once: it is in no file, so it is lost when the
// process ends. Signal handlers of arm64 and of 32-bit programs return to it.
func (c *copies) keepImage(m process.Mapping) {
	if m.Path != process.Vdso {
		return
	}
	if image, err := c.target.Image(m); err == nil {
		c.images[m.Key()] = image
	}
}

// open opens the file or the image mapped at m. It returns nil for code that is in no
// file.
func (c *copies) open(m process.Mapping) (*symbol.File, error) {
	if image := c.images[m.Key()]; image != nil {
		return symbol.New(bytes.NewReader(image), int64(len(image)))
	}
	return c.target.OpenCode(m)
}

// unwind returns the stack of a copy.
func (c *copies) unwind(raw *order.RawStack) reference.Stack {
	var memory reference.Layers
	for _, r := range raw.Ranges {
		memory = append(memory, reference.Raw{Addr: r.Start, Data: r.Data})
	}
	o := reference.Options{
		Machine: c.machine, Depth: c.depth, FramePointer: c.pointer, AddressBits: c.target.AddressBits,
	}
	if raw.Inside {
		c.stayInside(raw, &o)
	}
	s := reference.Unwind(raw.Regs, append(memory, codeWords{c}), c, o)
	if raw.Inside {
		leave(raw, &s)
	}
	c.cut(&s)
	return s
}

// stayInside changes o for a copy that was made inside the probed function: its frame is one
// more, and a probe of somebody else may have replaced its return address.
func (c *copies) stayInside(raw *order.RawStack, o *reference.Options) {
	o.Depth++
	o.Interrupted = true
	first := true
	o.Trampoline = func(uint64) (uint64, bool) {
		was := first
		first = false
		return raw.Caller, was
	}
}

// leave removes the frame of the probed function.
func leave(raw *order.RawStack, s *reference.Stack) {
	if len(s.Frames) > 1 {
		s.Frames = s.Frames[1:]
	} else {
		s.Frames = []uint64{raw.Caller}
	}
}

// cut ends a stack before a frame that is not code, or that is a return probe's stub,
// whose real return address only the kernel knows.
func (c *copies) cut(s *reference.Stack) {
	for i, pc := range s.Frames {
		if m := c.code.at(pc); i > 0 && (m == nil || m.Path == process.Trampolines) {
			s.Frames, s.End = s.Frames[:i], reference.Unmapped
			return
		}
	}
}

// Find implements reference.Modules.
func (c *copies) Find(pc uint64) (reference.Module, bool) {
	m := c.code.at(pc)
	if m == nil || m.Path == process.Trampolines {
		return reference.Module{}, false
	}
	key := m.Key()
	module, ok := c.modules[key]
	if !ok {
		module = c.module(*m)
		c.modules[key] = module
	}
	return module, true
}

// module reads the unwind information of a mapped file. If that fails, the module has
// none.
func (c *copies) module(m process.Mapping) reference.Module {
	f, err := c.open(m)
	if err != nil || f == nil {
		return reference.Module{}
	}
	defer f.Close()
	key := tables.KeyOf(m, f)
	index, ok := c.files[key]
	if !ok {
		if sections, err := cfi.Sections(f); err == nil {
			index, _ = cfi.NewIndex(sections...)
		}
		c.files[key] = index
	}
	return reference.Module{Index: index, Bias: m.Bias(f.Segments())}
}

// mapped notes that m appeared, and drops what was known of its place.
func (c *copies) mapped(m process.Mapping) {
	maps.DeleteFunc(c.modules, func(k process.ModuleKey, _ reference.Module) bool { return m.Overlaps(k.Place()) })
	maps.DeleteFunc(c.images, func(k process.ModuleKey, _ []byte) bool { return m.Overlaps(k.Place()) })
	clear(c.words)
	c.keepImage(m)
}

// forget drops everything after the process replaced its program.
func (c *copies) forget() {
	clear(c.files)
	clear(c.modules)
	clear(c.images)
	clear(c.words)
	c.keepImages()
}

// late returns the stack of a copy in the form of the programs' stacks.
func (c *copies) late(raw *order.RawStack) *order.StackDef {
	s := c.unwind(raw)
	return &order.StackDef{Late: true, Hash: raw.Hash, Frames: s.Frames, FramePointer: s.FramePointer, End: map[reference.End]object.ProbeStackEnd{
		reference.Complete: object.ProbeStackEndSTACK_COMPLETE, reference.Truncated: object.ProbeStackEndSTACK_TRUNCATED,
		reference.NoRule: object.ProbeStackEndSTACK_NO_RULE, reference.BadRule: object.ProbeStackEndSTACK_NO_RULE,
		reference.BadFrame: object.ProbeStackEndSTACK_BAD_FRAME, reference.Unmapped: object.ProbeStackEndSTACK_UNMAPPED,
		reference.Unreadable: object.ProbeStackEndSTACK_UNREADABLE,
	}[s.End]}
}
