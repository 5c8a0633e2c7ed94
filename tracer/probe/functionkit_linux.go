package probe

import (
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/plan"
)

// fileOffset is a place in a file of a kit.
type fileOffset struct {
	file   int
	offset uint64
}

// functionReturn is a return instruction of one or more functions.
type functionReturn struct {
	probe   plan.Probe
	leaving functions.Leaving
}

// functionKit is a kit for the probes of traced functions.
type functionKit struct {
	*kit
	functions *functions.Functions
	returns   map[fileOffset]*functionReturn
}

// gather makes the groups for probes.
func (b *functionKit) gather(probes []plan.FunctionProbe) error {
	f := b.functions
	var order []fileOffset
	for i := range probes {
		p := &probes[i]
		file, err := b.file(&p.Entry)
		if err != nil {
			return err
		}
		for _, r := range p.Returns {
			at := fileOffset{file, r.Offset}
			if b.returns[at] == nil {
				b.returns[at] = &functionReturn{probe: r}
				order = append(order, at)
			}
			b.returns[at].leaving.Add(p.Function)
		}
		if p.Ways.Stub {
			leaving := functions.Leaving{Stub: true}
			leaving.Add(p.Function)
			made, err := f.Return(leaving)
			if err != nil {
				return err
			}
			b.add(made.Program, made.Cookie, file, &p.Entry, true)
		}
	}
	for _, at := range order {
		made, err := f.Return(b.returns[at].leaving)
		if err != nil {
			return err
		}
		b.add(made.Program, made.Cookie, at.file, &b.returns[at].probe, false)
	}
	for i := range probes {
		p := &probes[i]
		var made functions.Probe
		var err error
		if p.Value != nil {
			made, err = f.Look(p.Value)
		} else {
			made, err = f.Entry(p.Function, p.Back, p.Ways)
		}
		if err != nil {
			return err
		}
		b.add(made.Program, made.Cookie, b.numbers[p.Entry.File], &p.Entry, false)
	}
	return nil
}
