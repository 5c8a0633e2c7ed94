package tracer

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/internal/unwind/reference"
)

// maxDifferences is how many differences are described; the others are counted.
const maxDifferences = 10

// verifier unwinds stacks again, from copies of the memory and by all that the
// files say, and compares the outcome with that of the programs.
type verifier struct {
	target  *target
	machine elf.Machine
	depth   int
	pointer bool // frame-pointer steps are allowed
	log     func(format string, args ...any)

	files    map[fileID]*cfi.Index // nil for a file without tables
	mappings []mapping             // that modules was made of
	modules  *reference.Space

	checked, differs uint64
}

func newVerifier(t *target, o *Options) *verifier {
	return &verifier{
		target: t, machine: nativeMachine, depth: o.depth(), pointer: o.Unwind == UnwindAuto,
		log: o.warn, files: map[fileID]*cfi.Index{},
	}
}

// check compares what the programs made of a raw stack. Code is what is mapped.
func (v *verifier) check(raw *rawStack, def *stackDef, code []mapping) {
	if err := v.place(code); err != nil {
		v.log("check of a stack: %v", err)
		return
	}
	var memory reference.Layers
	for _, r := range raw.ranges {
		memory = append(memory, reference.Raw{Addr: r.start, Data: r.data})
	}
	want := reference.Unwind(raw.regs, memory, v.modules, reference.Options{
		Machine: v.machine, Depth: v.depth, FramePointer: v.pointer,
	})
	switch agree, sure := agreement(def, &want); {
	case !agree:
		v.differs++
		v.checked++
		if v.differs <= maxDifferences {
			v.log("%s", difference(def, &want))
		}
	case sure:
		v.checked++
	}
}

// agreement says whether two outcomes agree as far as both go, and whether the
// reference got far enough to tell. Stacks that the programs gave up say so;
// they are right if they are the beginning of the true one.
func agreement(got *stackDef, want *reference.Stack) (agree, sure bool) {
	n := min(len(got.frames), len(want.Frames))
	if !slices.Equal(got.frames[:n], want.Frames[:n]) {
		return false, true
	}
	switch {
	case want.End == reference.Complete, want.End == reference.Truncated:
		whole := got.end == probeStackEndSTACK_COMPLETE || got.end == probeStackEndSTACK_TRUNCATED
		return len(got.frames) <= len(want.Frames) && (!whole || len(got.frames) == len(want.Frames)), true
	case want.End == reference.Unreadable, want.End == reference.Unmapped:
		// The copy ends there, or a return probe's stub stands for the caller.
		return true, false
	}
	return true, len(got.frames) <= len(want.Frames)
}

// difference describes two outcomes side by side.
func difference(got *stackDef, want *reference.Stack) string {
	var b strings.Builder
	end, reason := stackEnd(got.end)
	fmt.Fprintf(&b, "stack differs: programs %s %s, reference %s", end, reason, want.End)
	for i := range max(len(got.frames), len(want.Frames)) {
		fmt.Fprintf(&b, "\n  %2d  %-16s  %s", i, frameText(got.frames, i), frameText(want.Frames, i))
	}
	return b.String()
}

func frameText(frames []uint64, i int) string {
	if i >= len(frames) {
		return "-"
	}
	return fmt.Sprintf("%#x", frames[i])
}

// place makes the modules of what is mapped.
func (v *verifier) place(code []mapping) error {
	if v.modules != nil && slices.EqualFunc(code, v.mappings, mapping.same) {
		return nil
	}
	var all []reference.Mapping
	for _, m := range code {
		all = append(all, reference.Mapping{Start: m.start, End: m.end, Module: v.module(m)})
	}
	modules, err := reference.NewSpace(all)
	if err != nil {
		return err
	}
	v.modules, v.mappings = modules, slices.Clone(code)
	return nil
}

// module reads the tables of a mapped file.
func (v *verifier) module(m mapping) reference.Module {
	f, err := v.target.openCode(m)
	if err != nil || f == nil {
		return reference.Module{}
	}
	defer f.Close()
	id := fileID{m.major, m.minor, m.inode}
	index, ok := v.files[id]
	if !ok {
		if sections, err := cfi.Sections(f); err == nil {
			index, err = cfi.NewIndex(sections...)
			if err != nil {
				index = nil
			}
		}
		v.files[id] = index
	}
	return reference.Module{Index: index, Bias: bias(f.Segments(), m)}
}

// verify checks a raw stack if the programs' outcome has arrived.
func (s *stream) verify(id uint64) {
	raw := s.raws[id]
	delete(s.raws, id)
	if raw == nil || s.verifier == nil || s.coverage.doubtful() {
		return
	}
	if def := s.stack(raw.hash); def != nil {
		s.verifier.check(raw, def, s.mappings.current)
	}
}
