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

// MaxRows is how many rows a table has at most, which is what the program in
// the kernel can search. The largest known program needs 2.8 million.
const MaxRows = 1 << 23

// Build makes the table of a file. It reads all that it needs, so that the
// file may be closed.
//
// Broken entries are left out and counted. The error is ErrNoFrames if the
// file has no call frame information for its code, else one of reading the
// file or a *trace.SyntaxError.
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
		return nil, fmt.Errorf("make unwind table: %w", err)
	}
	return &b.Table, nil
}

// function is code that has rules. Only this is kept of an FDE, since a file
// may have hundreds of thousands.
type function struct {
	start, end uint64
	offset     uint32 // of the FDE
	section    int8   // that it is in; of code without an FDE, see ofRestorer and outermost
}

// builder makes a table.
type builder struct {
	translator
	file      *symbol.File
	sections  []*cfi.Section
	readers   []*cfi.Reader
	functions []function
	signals   bool // an FDE is marked as that of a signal frame
	broken    error

	writer

	// Of the FDE that rows are being made of, kept to allocate nothing for each.
	fde   cfi.FDE
	until uint64 // where its part of the code ends
	yield func(*cfi.Span) error
}

// size returns how many bytes the sections have.
func (b *builder) size() (n int) {
	for _, s := range b.sections {
		n += len(s.Data)
	}
	return n
}

// collect finds the functions, by address.
func (b *builder) collect() error {
	code := b.file.Segments()
	slices.SortFunc(code, func(x, y symbol.Segment) int { return cmp.Compare(x.Addr, y.Addr) })
	b.functions = make([]function, 0, min(b.size()/48, 1<<18)) // of 50 bytes and more
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
			// Linkers leave entries of functions that they removed, at zero or
			// nowhere.
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

// within returns the end of the segment that addr is in.
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
