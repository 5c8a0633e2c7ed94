package unwind

import (
	"errors"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/trace"
)

// errEnd reports that the part of a function that belongs to its FDE has ended.
var errEnd = errors.New("end of the function")

// fill makes the rows of all functions.
func (b *builder) fill() error {
	// Compilers write six to seven bytes per row. Some slack saves copying.
	b.begin(b.functions[0].start, min(b.size()/5, 64*len(b.functions), MaxRows)+2)
	in := b.interpreter()
	b.yield = b.span
	barrier := uint64(0) // where the last restorer ends: no FDE may begin before
	for i := range b.functions {
		f := &b.functions[i]
		if f.start < barrier {
			continue
		}
		if f.section == outermost {
			if err := b.cover(f.start, f.end, RuleEnd); err != nil {
				return err
			}
			continue
		}
		if f.section < 0 {
			barrier = f.end
			if err := b.coverRestorer(f, &restorers[b.machine][ofRestorer(f.section)], 1); err != nil {
				return err
			}
			continue
		}
		if i+1 < len(b.functions) {
			f.end = min(f.end, b.functions[i+1].start)
		}
		if err := b.interpret(in, f); err != nil {
			return err
		}
	}
	b.finish()
	return nil
}

// interpret makes the rows of an FDE.
func (b *builder) interpret(in *cfi.Interpreter, f *function) error {
	fde := &b.fde
	err := b.readers[f.section].Read(int(f.offset), fde)
	switch {
	case err != nil:
	case fde.CIE.ReturnReg != b.ra:
		return b.cover(f.start, f.end, RuleUnsupported)
	case fde.CIE.Signal:
		return b.coverSignal(f)
	default:
		b.until = f.end
		err = in.Run(fde, b.yield)
	}
	switch {
	case err == nil || err == errEnd:
		return nil
	case errors.Is(err, errFull):
		return err
	}
	if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
		return err
	}
	b.Broken++
	if from := max(b.end, f.start); from < f.end {
		return b.cover(from, f.end, RuleUnsupported)
	}
	return nil
}

// span makes the row for a span of the current function.
func (b *builder) span(s *cfi.Span) error {
	if s.Start >= b.until {
		return errEnd
	}
	return b.cover(s.Start, min(s.End, b.until), b.rule(s))
}
