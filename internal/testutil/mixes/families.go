package mixes

import "math"

// rest is the share of the recording after which everything has come to rest.
const rest = 0.6

// family adds one user of memory.
func (g *generator) family(name string) {
	switch name {
	case "lru":
		g.lru()
	case "cache":
		g.cache()
	case "pool":
		g.pool()
	case "arenas":
		g.arenas()
	case "sessions":
		g.sessions()
	case "start-up":
		g.tables()
	case "bursts":
		g.bursts()
	case "sawtooth":
		g.sawtooth()
	}
}

// lru adds a cache that evicts an entry for each new one: the oldest, one of the
// oldest, any, or the oldest of those that are not in demand. It fills up, and is
// exchanged for the most part, within the time of rest.
func (g *generator) lru() {
	s, capacity := g.site(), int(g.between(50, 2000))
	rate := float64(capacity) / g.share(0.05, rest*0.9)
	kind := g.rnd.IntN(4)
	var entries []int32
	demand := make(map[int32]bool)
	g.arrivals(g.begin, g.end, rate, func(at float64) {
		if len(entries) >= capacity {
			victim := 0
			switch kind {
			case 1:
				victim = g.rnd.IntN(5)
			case 2:
				victim = g.rnd.IntN(len(entries))
			case 3:
				for demand[entries[victim]] && victim < len(entries)-1 && g.rnd.IntN(20) > 0 {
					victim++
				}
			}
			g.free(at-1e-6, entries[victim])
			entries = append(entries[:victim], entries[victim+1:]...)
		}
		b := g.alloc(at, s)
		if g.rnd.IntN(10) == 0 {
			demand[b] = true
		}
		entries = append(entries, b)
	})
}

// cache adds a cache that never evicts: the more of its keys it has, the more
// seldom an entry is added. It may be cleared now and then.
func (g *generator) cache() {
	s, keys := g.site(), int(g.between(50, 2000))
	pace := g.share(0.01, rest/5) // time for 63 % of the rest
	cleared := math.Inf(1)
	if g.rnd.IntN(3) == 0 {
		cleared = g.share(0.3, 1)
	}
	var entries []int32
	g.arrivals(g.begin, g.end, float64(keys)/pace, func(at float64) {
		if at > g.begin+cleared && at-pace*4 < g.end*(1-rest) {
			for _, b := range entries {
				g.free(at-1e-6, b)
			}
			entries, cleared = nil, cleared+g.share(0.3, 1)
		}
		if g.rnd.IntN(keys) >= len(entries) {
			entries = append(entries, g.alloc(at, s))
		}
	})
}

// pool adds a pool whose size follows a wave. It frees the newest, the oldest or
// any of its blocks.
func (g *generator) pool() {
	s := g.site()
	base, swing := g.between(20, 500), g.between(20, 500)
	period, phase := g.share(0.03, rest/2), 2*math.Pi*g.rnd.Float64()
	which := g.rnd.IntN(3)
	var blocks []int32
	for at := g.begin; at < g.end; at += period / 100 {
		want := int(base + swing*(1+math.Sin(phase+2*math.Pi*at/period))/2 + 2*g.rnd.NormFloat64())
		t := at
		for len(blocks) < want {
			blocks = append(blocks, g.alloc(t, s))
			t += 1e-6
		}
		for len(blocks) > max(0, want) {
			n := len(blocks) - 1
			switch which {
			case 1:
				n = 0
			case 2:
				n = g.rnd.IntN(len(blocks))
			}
			g.free(t, blocks[n])
			blocks = append(blocks[:n], blocks[n+1:]...)
			t += 1e-6
		}
	}
}

// arenas adds arenas: filled in a row, kept for a while, freed as a whole.
func (g *generator) arenas() {
	s := g.site()
	each := g.between(5, 200)
	fill, kept := g.share(0.005, 0.05), g.share(0.005, rest/4)
	for at := g.begin + fill*g.rnd.Float64(); at < g.end; at += fill * (0.5 + g.rnd.Float64()) {
		var blocks []int32
		g.arrivals(at, at+fill, each/fill, func(at float64) { blocks = append(blocks, g.alloc(at, s)) })
		gone := at + fill + kept*(0.5+g.rnd.Float64())
		for i, b := range blocks {
			g.free(gone+float64(i)*1e-6, b)
		}
	}
}

// sessions adds sessions with a few blocks at up to three call sites. The
// longest last ten times as long as most.
func (g *generator) sessions() {
	sites := []int32{g.site(), g.site(), g.site()}[:1+g.rnd.IntN(3)]
	usual, longest := g.share(0.002, 0.05), g.share(0.1, rest*0.8)
	g.arrivals(g.begin, g.end, g.between(100, 1500)/g.end, func(at float64) {
		length := min(longest, usual*math.Exp(g.rnd.NormFloat64()))
		for i := range len(sites) * (1 + g.rnd.IntN(3)) {
			g.free(at+length+float64(i)*1e-6, g.alloc(at+length*0.5*g.rnd.Float64(), sites[i%len(sites)]))
		}
	})
}

// tables adds tables that are built at the start of the program and stay.
func (g *generator) tables() {
	s, n := g.site(), g.between(50, 3000)
	length := g.share(0.002, 0.1)
	g.arrivals(g.begin, g.begin+length, n/length, func(at float64) { g.alloc(at, s) })
}

// bursts adds many blocks at a time, which are freed a little later.
func (g *generator) bursts() {
	s := g.site()
	each, kept := g.between(20, 1000), g.share(0.001, 0.1)
	g.arrivals(g.begin, g.end, g.between(3, 30)/g.end, func(at float64) {
		gone := at + kept*(0.2+g.rnd.Float64())
		for i := range int(each) {
			g.free(gone+float64(i)*1e-6, g.alloc(at+float64(i)*1e-5, s))
		}
	})
}

// sawtooth adds a buffer that grows until it is flushed.
func (g *generator) sawtooth() {
	s, each := g.site(), g.between(20, 1000)
	period := g.share(0.02, rest/2)
	for at := g.begin - period*g.rnd.Float64(); at < g.end; at += period {
		var blocks []int32
		g.arrivals(max(at, g.begin), at+period, each/period, func(at float64) { blocks = append(blocks, g.alloc(at, s)) })
		for i, b := range blocks {
			g.free(at+period+float64(i)*1e-6, b)
		}
	}
}
