package mixes

import (
	"math"
	"math/rand/v2"
	"time"

	"rtrace-bpf/trace"
)

// Operation is call sites that leak together: each time it runs and leaks, it
// leaks a block of each.
type Operation struct {
	Sites []uint64 // innermost frames
	Below uint64   // the frame that called all of them, directly or not
	Times int      // it leaked in the recording
	Bytes uint64   // that it leaked
	Rate  float64  // bytes per second, from when it begins to leak
}

// Kinds are the kinds of mixes of [NewOperations].
var Kinds = []string{
	"alone", // an operation of two to six call sites leaks
	"other", // so does another call site: less than the operation, but mostly more than each of its call sites
	"two",   // two operations leak independently
	"apart", // two to four call sites with the same callers leak independently, at the same rate
}

// Together is the trace of a program that leaks at several call sites.
type Together struct {
	Mix
	Kind       string
	Operations []Operation // an independent call site is one of its own
}

// NewOperations makes the trace of a seed. Its kind is that of seed modulo 4.
func NewOperations(seed uint64) (*Together, func(add func(*trace.Record))) {
	rnd := rand.New(rand.NewPCG(seed, 0x746f676574686572))
	g := &generator{rnd: rnd, leaked: make(map[int32]bool)}
	m := &Together{Mix: Mix{Seed: seed, Family: Families[seed/4%10]}, Kind: Kinds[seed%4]}
	g.end = math.Round(g.between(60, 3600))
	m.Duration = time.Duration(g.end) * time.Second
	if m.Attached = rnd.IntN(2) == 0; m.Attached {
		g.begin = -g.end * (0.2 + rnd.Float64())
	}
	blocks := g.between(20_000, 60_000)
	g.busy(blocks)
	if m.Family == "all" {
		for _, name := range Families {
			g.family(name)
		}
	} else {
		g.family(m.Family)
	}
	g.operations(m, g.between(0.001, 0.05)*blocks)
	g.sort()
	g.addresses()
	m.Calls = g.calls()
	return m, g.records
}

// operations adds the leaks of a mix, each of about times blocks per call site.
func (g *generator) operations(m *Together, times float64) {
	callers := g.callers()
	switch m.Kind {
	case "alone":
		m.Operations = []Operation{g.operation(g.operationSites(callers), g.pace(times))}
	case "other":
		sites := g.operationSites(callers)
		all, most := uint32(0), uint32(0)
		for _, n := range sites {
			all, most = all+g.sites[n].mean(), max(most, g.sites[n].mean())
		}
		other := g.siteBelow(callers)
		size := min(most+(all-most)/2, all/4*3) // so that chance does not decide which is faster
		g.sites[other].least, g.sites[other].most = size, size
		m.Operations = []Operation{g.operation(sites, g.pace(times)), g.operation([]int32{other}, g.pace(times))}
	case "two":
		for range 2 {
			m.Operations = append(m.Operations, g.operation(g.operationSites(callers), g.pace(times*(0.5+g.rnd.Float64()))))
		}
	case "apart":
		same := g.pace(times)
		for range 2 + g.rnd.IntN(3) {
			p := same
			p.thread = int32(len(m.Operations) + 1)
			p.phase = g.rnd.Float64()
			m.Operations = append(m.Operations, g.operation([]int32{g.siteBelow(callers)}, p))
		}
	}
}

// callers returns the frames that the call sites of operations have in common.
func (g *generator) callers() []uint64 {
	var frames []uint64
	for k := range 2 + g.rnd.IntN(8) {
		frames = append(frames, 0x600000+uint64(k)*0x1000)
	}
	return frames
}

// siteBelow adds a call site with these callers, up to three more frames away.
func (g *generator) siteBelow(callers []uint64) int32 {
	n := g.site()
	stack := g.sites[n].stack[:1:1]
	for k := range g.rnd.IntN(4) {
		stack = append(stack, 0x700000+uint64(n)*0x100+uint64(k))
	}
	g.sites[n].stack = append(stack, callers...)
	return n
}

// operationSites adds the call sites of an operation, which is called by a
// frame of its own.
func (g *generator) operationSites(callers []uint64) []int32 {
	own := append([]uint64{0x680000 + uint64(len(g.sites))*0x10}, callers...)
	var sites []int32
	for range 2 + g.rnd.IntN(5) {
		sites = append(sites, g.siteBelow(own))
	}
	return sites
}

// mean returns the mean size of the blocks.
func (s *site) mean() uint32 { return s.least + (s.most-s.least)/2 }

// pace is when an operation leaks.
type pace struct {
	times    float64 // in the recording, about
	from     float64
	periodic bool    // at regular times, as a timer does
	phase    float64 // of the period
	busy     float64 // runs that leak nothing, for each one that does
	length   float64 // of one run
	thread   int32   // that runs it; 0: any
}

// pace chooses when an operation leaks.
func (g *generator) pace(times float64) pace {
	p := pace{times: max(12, times), from: g.begin, length: g.between(1e-6, 0.02)}
	if g.rnd.IntN(3) == 0 {
		p.from = g.share(0.1, 0.5)
	}
	p.periodic = g.rnd.IntN(4) == 0
	if g.rnd.IntN(2) == 0 {
		p.busy = g.between(1, 10)
	}
	return p
}

// operation adds runs of an operation.
func (g *generator) operation(sites []int32, p pace) (op Operation) {
	for _, n := range sites {
		op.Sites = append(op.Sites, g.sites[n].stack[0])
	}
	if len(sites) > 1 {
		stack := g.sites[sites[0]].stack
		for k := range stack {
			if stack[k]>>16 == 0x68 {
				op.Below = stack[k]
			}
		}
	}
	run := func(at float64, leaks bool) {
		thread := p.thread
		if thread == 0 {
			thread = 1 + int32(g.rnd.IntN(4))
		}
		last := at + p.length
		for i, n := range sites {
			when := at + p.length*float64(i)/float64(len(sites))
			b := g.alloc(when, n)
			g.blocks[b].thread = thread
			switch {
			case !leaks:
				g.free(last+float64(i)*1e-6, b)
			case when >= 0 && when <= g.end:
				op.Bytes += uint64(g.blocks[b].size)
			}
		}
		if leaks && at >= 0 && at <= g.end {
			op.Times++
		}
	}
	rate := p.times / g.end
	defer func() { op.Rate = float64(op.Bytes) / (g.end - max(0, p.from)) }()
	if p.busy > 0 {
		g.arrivals(p.from, g.end, rate*p.busy, func(at float64) { run(at, false) })
	}
	if !p.periodic {
		g.arrivals(p.from, g.end, rate, func(at float64) { run(at, true) })
		return op
	}
	for at := p.from + p.phase/rate; at < g.end; at += 1 / rate {
		run(at, true)
	}
	return op
}
