package dataset

import (
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// block is what is kept of a block until it ends.
type block struct {
	call, since, address, size, stack int64
	pid, tid                          int32
	function, resource                uint32 // numbers of texts; 0 for a block that is not in use
	timed                             bool
}

// blocks writes the table of blocks. It is an [aggregate.Keeper]: the engine decides when
// blocks begin and end.
type blocks struct {
	w      *Writer
	engine *aggregate.Engine
	out    *table[Block]
	live   []block // by the number that the engine gives them
	sites  []int64 // numbers of stacks, by call site
}

var _ aggregate.Keeper = (*blocks)(nil)

// Began implements aggregate.Keeper.
func (b *blocks) Began(number uint64, site int, r *trace.Record) {
	for uint64(len(b.live)) <= number {
		b.live = append(b.live, block{})
	}
	b.at(site)
	b.live[number] = b.made(r)
}

// at notes the stack of a call site.
func (b *blocks) at(site int) {
	for len(b.sites) <= site {
		b.sites = append(b.sites, b.w.call.stack)
	}
}

func (b *blocks) made(r *trace.Record) block {
	c := &r.Call
	return block{
		call: int64(c.Seq), since: b.w.call.since, timed: b.w.call.timed, address: int64(c.ID), size: int64(c.Size),
		stack: b.w.call.stack, pid: r.PID, tid: r.TID,
		function: b.w.texts.Add(c.Function), resource: b.w.texts.Add(b.w.resources.typeOf(c.Resource)),
	}
}

// Ended implements aggregate.Keeper.
func (b *blocks) Ended(number uint64, r *trace.Record) {
	own := b.live[number]
	b.live[number] = block{}
	row := b.row(&own)
	now := b.w.record
	switch {
	case b.engine.Unknown(number):
		row.End = "unknown"
	case r != nil && r.Call.Op == trace.OpMove:
		row.End = "moved"
	case r != nil:
		row.End = "freed"
	case now.Kind == trace.KindExec:
		row.End = "exec"
	default:
		row.End = "replaced"
	}
	if now.Kind == trace.KindCall {
		row.EndedCall, row.EndedTID = int64(now.Call.Seq), now.TID
		b.ended(row, &own, b.w.call.since, b.w.call.timed, r != nil)
	} else if since, ok := b.w.times.other(now.Time); ok {
		b.ended(row, &own, since, true, false)
	}
}

// ended sets the time when a block ended, and how long it lived if that is known.
func (b *blocks) ended(row *Block, own *block, since int64, timed, freed bool) {
	if !timed {
		return
	}
	row.EndedSince = b.out.number(since)
	if freed && own.timed {
		row.Lifetime = b.out.number(since - own.since)
	}
}

// Sampled implements aggregate.Keeper.
func (b *blocks) Sampled(r *trace.Record) {
	own := b.made(r)
	b.row(&own).End = "sampled"
}

// row writes what is known of a block before it ends.
func (b *blocks) row(own *block) *Block {
	row := b.out.add()
	*row = Block{
		Trace: b.w.source.ID, Call: own.call, PID: own.pid, TID: own.tid, Function: b.w.texts.Text(own.function),
		Resource: b.w.texts.Text(own.resource), Address: own.address, Size: own.size, Stack: own.stack,
	}
	if own.timed {
		row.Since = b.out.number(own.since)
	}
	return row
}

// finish writes the blocks that did not end.
func (b *blocks) finish() {
	for n := range b.live {
		own := &b.live[n]
		if own.function == 0 {
			continue
		}
		row := b.row(own)
		row.End = "live"
		if b.engine.Unknown(uint64(n)) {
			row.End = "unknown"
		}
	}
}

// resourceTypes is the types of resources of a trace.
type resourceTypes struct{ of map[uint32]string }

// declare notes the type of a resource.
func (t *resourceTypes) declare(id uint32, name string) {
	if t.of == nil {
		t.of = make(map[uint32]string)
	}
	t.of[id] = name
}

// typeOf returns the type of a resource. Undeclared ones are memory.
func (t *resourceTypes) typeOf(id uint32) string {
	if name, ok := t.of[id]; ok {
		return name
	}
	return aggregate.Memory
}

// amounts splits an amount into two columns.
func amounts(a live.Amount) (blocks, bytes int64) { return int64(a.Blocks), int64(a.Bytes) }
