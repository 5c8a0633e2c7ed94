package unwind

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/trace"
)

// MaxRows is the most rows of a table that the program in the kernel can search. The largest
// known program needs 2.8 million.
const MaxRows = 1 << 23

// Build builds the table of a file. It reads all that it needs, so the file may be closed
// afterwards.
//
// It skips and counts broken entries. The error is ErrNoFrames if the file has no call frame
// information for its code, else an error from reading the file or a *trace.SyntaxError.
func Build(f *symbol.File) (*Table, error) {
	sections, err := cfi.Sections(f)
	if _, ok := errors.AsType[*trace.SyntaxError](err); err != nil && (!ok || len(sections) == 0) {
		return nil, err
	}
	b := builder{translator: newTranslator(cfi.MachineOf(f.Machine())), file: f, sections: sections}
	b.Word = b.word
	if err := b.collect(); err != nil {
		return nil, err
	}
	if len(b.functions) == 0 {
		if b.broken != nil {
			return nil, b.broken
		}
		return nil, ErrNoFrames
	}
	if err := b.fill(); err != nil {
		return nil, fmt.Errorf("build unwind table: %w", err)
	}
	return &b.Table, nil
}

// function is code that has rules. Of an FDE nothing else is kept, because a file may have
// hundreds of thousands.
type function struct {
	start, end uint64
	offset     uint32 // of the FDE
	section    int8   // index of the FDE's section; for code without an FDE, see ofRestorer and outermost
}

// builder builds a table.
type builder struct {
	translator
	file      *symbol.File
	sections  []*cfi.Section
	readers   []*cfi.Reader
	functions []function
	signals   bool // an FDE is marked as a signal frame
	broken    error

	writer

	// The current FDE; reused so that no FDE needs an allocation.
	fde   cfi.FDE
	until uint64 // end of the part of the code that belongs to it
	yield func(*cfi.Span) error
}

// size returns the total size of the sections in bytes.
func (b *builder) size() (n int) {
	for _, s := range b.sections {
		n += len(s.Data)
	}
	return n
}

// collect finds the functions and sorts them by address.
func (b *builder) collect() error {
	code := b.file.Segments()
	slices.SortFunc(code, func(x, y symbol.Segment) int { return cmp.Compare(x.Addr, y.Addr) })
	b.functions = make([]function, 0, min(b.size()/48, 1<<18)) // an entry takes 50 bytes and more
	for i, s := range b.sections {
		b.readers = append(b.readers, cfi.NewReader(s))
		for f, err := range s.FDEs {
			if err != nil {
				b.Broken++
				b.broken = cmp.Or(b.broken, err)
				continue
			}
			if len(b.functions) == MaxRows {
				return errFull
			}
			// Linkers keep entries of functions that they removed, at address zero or outside
			// the code.
			if end, ok := within(code, f.Start); ok && f.Start < f.End {
				b.functions = append(b.functions, function{f.Start, min(f.End, end), uint32(f.Offset), int8(i)})
				b.signals = b.signals || f.CIE.Signal
			}
		}
	}
	b.Functions = len(b.functions)
	if !b.signals && b.restores() {
		if err := b.findRestorers(code); err != nil {
			return err
		}
	}
	if err := b.findContexts(); err != nil {
		return err
	}
	order := func(x, y function) int {
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.section, y.section), cmp.Compare(x.offset, y.offset))
	}
	if !slices.IsSortedFunc(b.functions, order) {
		slices.SortFunc(b.functions, order)
	}
	b.functions = slices.CompactFunc(b.functions, func(x, y function) bool { return x.start == y.start })
	b.findEntry(code)
	return nil
}

// within returns the end of the segment that contains addr.
func within(code []symbol.Segment, addr uint64) (end uint64, ok bool) {
	i, found := slices.BinarySearchFunc(code, addr, func(s symbol.Segment, addr uint64) int { return cmp.Compare(s.Addr, addr) })
	if !found {
		i--
	}
	if i < 0 || addr-code[i].Addr >= code[i].FileSize {
		return 0, false
	}
	return code[i].Addr + code[i].FileSize, true
}
