package digest

import (
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// row holds the figures of one place for one type of resource.
type row struct {
	use      use
	process  *process
	pid      int32
	place    uint32
	resource uint16
	named    bool
	stack    []uint32 // numbers of frames, the innermost first; set if named
	// oldest is the beginning of the oldest block that is live at the end; its
	// event is 0 if there is none.
	oldest struct {
		event uint64
		time  int64
	}
}

// born updates oldest for a live block.
func (r *row) born(l life) {
	if r.oldest.event == 0 || l.event < r.oldest.event {
		r.oldest.event, r.oldest.time = l.event, l.time
	}
}

// process holds the places and rows of one process.
type process struct {
	names  sites.Names
	places sites.Table
	rows   sites.Numbers // 1 + the current row
	open   []uint32      // rows whose frames are not named yet
	steps  steps
	// sampled holds the blocks of resources of which the trace has only some
	// allocations.
	sampled map[sampledKey]live.Amount
}

type sampledKey struct {
	cell uint32
	bin  uint8
}

// keep adds a block that counts as live until exec.
func (p *process) keep(l life, size uint64) {
	if p.sampled == nil {
		p.sampled = make(map[sampledKey]live.Amount)
	}
	key := sampledKey{l.cell, sizeBin(size)}
	a := p.sampled[key]
	a.AddBlock(size)
	p.sampled[key] = a
}

// row returns the number of the row that a call belongs to.
func (d *Digest) row(p *process, of *resource, r *trace.Record) uint32 {
	place := p.places.Add(&r.Call.Stack, &r.Call.Caller, &p.names)
	n := p.rows.At(of.number, place)
	if *n == 0 {
		d.rows = append(d.rows, row{process: p, pid: r.PID, place: place, resource: uint16(of.number)})
		*n = uint32(len(d.rows))
		p.open = append(p.open, *n-1)
	}
	return *n - 1
}

// maxWork bounds the number of frames that are examined because mappings were
// removed. Beyond it, frames in removed mappings are named, if at all, with the
// mappings at the end.
const maxWork = 1 << 28

// mapping processes a change of mappings. Stacks with frames in removed
// mappings are named before the removal, because their files are unknown
// afterwards; later stacks with these addresses belong to the new mappings. All
// other stacks are named later, because some mappings are recorded late.
func (d *Digest) mapping(r *trace.Record) {
	m := &r.Mapping
	switch r.Kind {
	case trace.KindModule:
		d.facts.Modules++
	case trace.KindUnmapping:
		d.settleAll(r.PID, m.Start, m.End)
	case trace.KindMapping:
		if d.frames.module != nil {
			if old := d.frames.module(r.PID, m.Start+1); old != "" && old != m.Path {
				d.settleAll(r.PID, m.Start, m.End)
			}
		}
	}
	d.frames.observe(r)
}

// settleAll names the rows of a process, or of all if pid is 0, with frames in
// [start, end). In a trace that has processes in some records only, a process
// without calls counts as the one without an ID.
func (d *Digest) settleAll(pid int32, start, end uint64) {
	if pid == 0 {
		for _, p := range d.processes.All() {
			d.settle(p, start, end)
		}
		return
	}
	all := d.processes.All()
	p := all[pid]
	if p == nil || len(p.rows) == 0 {
		p = all[0]
	}
	if p != nil {
		d.settle(p, start, end)
	}
}

// settle names the rows of a process with frames in [start, end).
func (d *Digest) settle(p *process, start, end uint64) {
	if end <= start || d.work <= 0 {
		return
	}
	open := p.open[:0]
	for _, n := range p.open {
		r := &d.rows[n]
		d.frames.addresses, d.frames.texts = d.frames.addresses[:0], d.frames.texts[:0]
		stack, _ := p.places.Place(r.place, &p.names, &d.frames.addresses, &d.frames.texts)
		d.work -= 1 + len(stack.Frames)
		// A return address may be the first one after the mapping.
		if !slices.ContainsFunc(stack.Frames, func(a uint64) bool { return start < a && a <= end }) {
			open = append(open, n)
			continue
		}
		d.frames.name(r)
		*p.rows.At(int(r.resource), r.place) = 0
	}
	p.open = open
}
