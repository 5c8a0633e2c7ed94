package aggregate

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Site is the figures of a call site.
type Site struct {
	Number   int   // from 0, in the order of the first calls; it never changes
	PID      int32 // its process
	Resource int   // index in State.Resources
	usage.Usage
	Freed    live.Amount // by a free or a realloc
	Replaced live.Amount // ended because another block began at their address
	Change   Change      // in the last interval
	First    int64       // time of the first allocation
	Last     int64       // time of the last allocation
	Oldest   int64       // when the oldest live block was allocated; -1 if there is none
}

// Detail is the figures of a call site that views show on demand.
type Detail struct {
	Sizes     []Size     // without gaps, the smallest first
	Lifetimes []Lifetime // without gaps, the shortest first
	Threads   []Thread   // in the order of their first calls
}

// site is a Site in progress.
type site struct {
	process   *process
	pid       int32
	place     uint32
	resource  uint16
	group     uint32 // in the sums of its resource
	first     int64
	last      int64
	freed     live.Amount
	replaced  live.Amount
	before    Change // at the start of the current interval
	change    Change // in the last interval
	sizes     steps[size]
	lifetimes steps[uint64]
	sources   []sourceOf
	history   trend.History
}

// process holds the places of a process that its sites refer to.
type process struct {
	names   sites.Names
	places  sites.Table
	numbers sites.Numbers          // 1 + the number of the site
	sampled map[sample]live.Amount // blocks of sampled resources
}

// sample identifies blocks that are live until exec.
type sample struct {
	source uint32
	step   uint8 // of sizes
}

// keep adds a block that counts as live until exec.
func (p *process) keep(source uint32, size uint64) {
	if p.sampled == nil {
		p.sampled = make(map[sample]live.Amount)
	}
	key := sample{source, step(size)}
	a := p.sampled[key]
	a.AddBlock(size)
	p.sampled[key] = a
}

// callSites finds the call site of a call, and what is known of it.
type callSites struct {
	all       live.Values[site]
	processes live.Processes[process]
	sources   live.Values[source]
	threads   blocks.Threads
	mappings  Mappings
	work      int // words that were examined because of changed mappings
}

func newCallSites() callSites {
	return callSites{
		processes: live.NewProcesses(func() *process { return new(process) }),
		threads:   blocks.Threads{Most: maxThreads},
	}
}

// at returns the site with a number.
func (c *callSites) at(n uint32) *site { return c.all.At(uint64(n)) }

// of returns the number of the site of a call in a process.
func (c *callSites) of(p *process, of *resource, r *trace.Record, now int64) uint32 {
	place := p.places.Add(&r.Call.Stack, &r.Call.Caller, &p.names)
	n := p.numbers.At(of.number, place)
	if *n == 0 {
		c.all.Add(site{
			process: p, pid: r.PID, place: place, resource: uint16(of.number), group: uint32(of.sites), first: now,
		})
		of.sites++
		*n = uint32(c.all.Len())
	}
	return *n - 1
}
