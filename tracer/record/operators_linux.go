package record

import (
	"maps"
	"slices"

	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// operators finds the operator new whose code made a call, by the call's return address.
type operators struct {
	files    map[process.FileID][]plan.OperatorCode // what was read; nil if operators give no names
	read     func(process.Mapping) []plan.OperatorCode
	mappings *mappings
	spans    []operatorSpan
}

// operatorSpan is the code of the operators of a file where it was mapped last. That mapping may
// be gone.
type operatorSpan struct {
	code  process.Extent // from the first operator to the last one
	file  process.FileID
	bias  uint64
	codes []plan.OperatorCode
}

// begin takes what a plan knows about files.
func (o *operators) begin(p *plan.Plan, ms *mappings) {
	if p.Memory.News == nil {
		return
	}
	o.files, o.mappings = maps.Clone(p.Memory.News), ms
	o.read = func(m process.Mapping) []plan.OperatorCode {
		f, _, err := p.Target.Open(m)
		if err != nil || f == nil {
			return nil // no ELF file, or one that is gone
		}
		codes := plan.NewOperatorsIn(f, m.Path, p.Target.Machine)
		_ = f.Close() // it was only read
		return codes
	}
}

// moved notes that m was mapped. Call it again if that may have changed.
func (o *operators) moved(m process.Mapping, info process.FileInfo) {
	if o.files == nil || m.Inode == 0 {
		return
	}
	o.spans = slices.DeleteFunc(o.spans, func(s operatorSpan) bool {
		return s.code.Start < m.End && m.Start < s.code.End
	})
	codes, known := o.files[m.ID()]
	if !known {
		codes = o.read(m)
		o.files[m.ID()] = codes
	}
	if len(codes) == 0 || !info.Known {
		return
	}
	span := operatorSpan{file: m.ID(), bias: info.Bias, codes: codes}
	for i, c := range codes {
		start, end := info.Bias+c.Start, info.Bias+c.End
		if i == 0 {
			span.code = process.Extent{Start: start, End: end}
		}
		span.code = process.Extent{Start: min(span.code.Start, start), End: max(span.code.End, end)}
	}
	if span.code.Start >= m.Start && span.code.End <= m.End {
		o.spans = append(o.spans, span)
	}
}

// calling returns the name of the operator new whose code contains a return address, or "".
func (o *operators) calling(caller uint64) string {
	for i := range o.spans {
		s := &o.spans[i]
		if caller < s.code.Start || caller >= s.code.End {
			continue
		}
		if m := o.mappings.at(caller); m == nil || m.ID() != s.file {
			return ""
		}
		for j := range s.codes {
			if at := caller - s.bias; at >= s.codes[j].Start && at < s.codes[j].End {
				return s.codes[j].Name
			}
		}
	}
	return ""
}
