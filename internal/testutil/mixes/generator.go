package mixes

import (
	"math"
	"math/rand/v2"
	"time"
)

// generator makes the calls of one program. Times are in seconds.
type generator struct {
	rnd        *rand.Rand
	begin, end float64 // of the program and of the recording, which starts at 0
	sites      []site
	blocks     []block
	leaked     map[int32]bool
	events     []event
}

// site is a call site; its blocks have sizes from least to most.
type site struct {
	stack       []uint64
	least, most uint32
}

// between returns a number between two others, whose logarithm is distributed
// evenly.
func (g *generator) between(least, most float64) float64 {
	return least * math.Pow(most/least, g.rnd.Float64())
}

// share returns a duration between two shares of the recording.
func (g *generator) share(least, most float64) float64 {
	return g.end * (least + (most-least)*g.rnd.Float64())
}

// site adds a call site.
func (g *generator) site() int32 {
	n := len(g.sites)
	stack := []uint64{0x400000 + uint64(n)*0x100}
	for k := range 2 + g.rnd.IntN(10) {
		stack = append(stack, 0x500000+uint64(k)*0x1000+uint64(n%5))
	}
	least := uint32(g.between(16, 4096))
	s := site{stack: stack, least: least, most: least}
	if g.rnd.IntN(2) == 0 {
		s.most *= 4
	}
	g.sites = append(g.sites, s)
	return int32(n)
}

// alloc adds an allocation.
func (g *generator) alloc(at float64, site int32) int32 {
	s := &g.sites[site]
	n := int32(len(g.blocks))
	g.blocks = append(g.blocks, block{site: site, size: s.least + g.rnd.Uint32N(s.most-s.least+1)})
	g.events = append(g.events, event{time: at, block: n})
	return n
}

// free adds the free of a block.
func (g *generator) free(at float64, block int32) {
	g.events = append(g.events, event{time: at, block: block, free: true})
}

// arrivals calls f at random times from one time to another, rate times a second
// on average.
func (g *generator) arrivals(from, to, rate float64, f func(at float64)) {
	for at := from + g.rnd.ExpFloat64()/rate; at < to; at += g.rnd.ExpFloat64() / rate {
		f(at)
	}
}

// leak adds a leak and returns it. The busy allocator will allocate the given
// number of blocks in the recording.
func (g *generator) leak(busy float64) *Leak {
	l := &Leak{Share: g.between(0.001, 0.1)}
	n := g.site()
	l.Site = g.sites[n].stack[0]
	rate := l.Share * busy / g.end
	from := g.begin
	g.leaked = make(map[int32]bool)
	keep := func(at float64) { g.leaked[g.alloc(at, n)] = true }
	switch g.rnd.IntN(4) {
	case 0:
		l.Kind = "steady"
	case 1:
		l.Kind = "partial"
		life := g.between(0.001, 1)
		g.arrivals(g.begin, g.end, max(0.05*busy/g.end, 2*rate), func(at float64) { g.free(at+life*g.rnd.ExpFloat64(), g.alloc(at, n)) })
	case 2:
		l.Kind = "late"
		from = g.share(0.1, 0.5)
		l.Start = time.Duration(from * 1e9)
	case 3:
		l.Kind = "clumps"
		clumps := g.between(12, 60)
		size := max(1, rate*g.end/clumps)
		g.arrivals(g.begin, g.end, rate/size, func(at float64) {
			for range int(math.Round(size * (0.5 + g.rnd.Float64()))) {
				keep(at)
				at += 1e-5
			}
		})
		return l
	}
	g.arrivals(from, g.end, rate, keep)
	return l
}

// busy adds the busy allocator, which allocates so many blocks in the recording.
func (g *generator) busy(blocks float64) {
	n := 3 + g.rnd.IntN(18)
	for range n {
		s := g.site()
		life := g.between(0.001, 1)
		g.arrivals(g.begin, g.end, blocks/g.end/float64(n), func(at float64) { g.free(at+life*g.rnd.ExpFloat64(), g.alloc(at, s)) })
	}
}
