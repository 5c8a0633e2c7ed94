package digestview

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/digest"
)

// Limits of a fleet's page, in addition to those of other pages. What is beyond them is added up as
// "(other)".
const (
	maxParts    = 400    // pairs of a host and a service
	maxShares   = 15_000 // shares of call sites
	maxTraces   = 2000   // rows of traces
	siteText    = maxText / 5
	maxRemarks  = 5 // notes about a trace
	noMoreParts = "(other)"
)

// fleetData is the data for the script of a fleet's page.
type fleetData struct {
	Resource  string    `json:"resource"`
	Texts     []string  `json:"texts"`
	Frames    frameData `json:"frames"`
	Nodes     nodeData  `json:"nodes"`
	Parts     [][4]int  `json:"parts"` // host and service as numbers of Texts, traces, and those in which something grows
	Sites     []int     `json:"sites"` // names as numbers of Texts
	Shares    shares    `json:"shares"`
	Stacks    fleetRows `json:"stacks"`
	Traces    [][]any   `json:"traces"` // file, host, service, state, part, calls, growing call sites, uses, notes
	LeftSites int       `json:"leftSites"`
	LeftRows  int       `json:"leftTraces"`
}

// shares holds the shares of call sites as columns. Site -1 is the sum of those that are left out.
type shares struct {
	Site    []int     `json:"site"`
	Part    []int     `json:"part"`
	Traces  []int     `json:"traces"`
	Growing []int     `json:"growing"`
	Blocks  []float64 `json:"blocks"` // per second
	Bytes   []float64 `json:"bytes"`  // per second
	Uses    []uses    `json:"uses"`
}

// fleetRows holds the stacks as columns, like stacks.
type fleetRows struct {
	Node  []int  `json:"node"`
	Part  []int  `json:"part"`
	Site  []int  `json:"site"` // -1 for sums of several
	Uses  []uses `json:"uses"`
	First int    `json:"first"`
	Left  int    `json:"left"`
}

// fleetBuilder builds the data of a fleet's page.
type fleetBuilder struct {
	builder
	data  fleetData
	parts []int // number in the page, by the number in the fleet
	sites []int // likewise; -1 for those that are left out
}

func buildFleet(f *Fleet) *fleetData {
	b := &fleetBuilder{builder: builder{result: &digest.Result{}, texts: map[string]int{"": 0}, left: maxText, children: make(map[uint64]int)}}
	b.Texts = []string{""}
	b.Nodes = nodeData{Parent: []int{0}, Frame: []int{otherFrame}}
	b.Frames = frameData{[]int{}, []int{}, []uint64{}, []int{}, []int{}, []int{}, map[int]int{}}
	b.data = fleetData{Resource: f.Resource, Sites: []int{}, Traces: [][]any{}}
	b.addParts(f.Parts)
	b.addSites(f.Sites)
	b.addTraces(f.Traces)
	b.addStacks(f.Stacks)
	b.data.Texts, b.data.Frames, b.data.Nodes = b.Texts, b.Frames, b.Nodes
	return &b.data
}

// addParts adds the parts. Those that do not fit are one.
func (b *fleetBuilder) addParts(parts []FleetPart) {
	order := make([]int, len(parts))
	for i := range parts {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(parts[y].Traces, parts[x].Traces) })
	b.parts = make([]int, len(parts))
	b.data.Parts = [][4]int{}
	for n, i := range order {
		p := &parts[i]
		b.parts[i] = min(n, maxParts)
		switch {
		case n < maxParts:
			b.data.Parts = append(b.data.Parts, [4]int{b.text(p.Host), b.text(p.Service), p.Traces, p.Growing})
		case n == maxParts:
			b.data.Parts = append(b.data.Parts, [4]int{b.text(noMoreParts), b.text(noMoreParts), p.Traces, p.Growing})
		default:
			b.data.Parts[maxParts][2] += p.Traces
			b.data.Parts[maxParts][3] += p.Growing
		}
	}
}

// addSites adds call sites and their shares, as long as there is room.
func (b *fleetBuilder) addSites(all []FleetSite) {
	s := &b.data.Shares
	*s = shares{[]int{}, []int{}, []int{}, []int{}, []float64{}, []float64{}, []uses{}}
	b.sites = make([]int, len(all))
	room := maxShares
	rowOf := make(map[[2]int]int) // by site and part
	for i := range all {
		site := otherFrame
		if name := b.text(all[i].Name); name > 0 && b.left > maxText-siteText && len(all[i].In) <= room {
			site = len(b.data.Sites)
			b.data.Sites = append(b.data.Sites, name)
			room -= len(all[i].In)
		} else {
			b.data.LeftSites++
		}
		b.sites[i] = site
		for k := range all[i].In {
			in := &all[i].In[k]
			key := [2]int{site, b.parts[in.Part]}
			row, ok := rowOf[key]
			if !ok {
				row = len(s.Site)
				rowOf[key] = row
				s.Site, s.Part, s.Traces, s.Growing = append(s.Site, site), append(s.Part, key[1]), append(s.Traces, 0), append(s.Growing, 0)
				s.Blocks, s.Bytes, s.Uses = append(s.Blocks, 0), append(s.Bytes, 0), append(s.Uses, uses{})
			}
			s.Traces[row] += in.Traces
			s.Growing[row] += in.Growing
			s.Blocks[row] += in.Blocks
			s.Bytes[row] += in.Bytes
			u := usesOfUse(&in.Use)
			s.Uses[row].add(&u)
		}
	}
}

// addTraces adds the traces: first those that do not count or are doubtful, then the largest.
func (b *fleetBuilder) addTraces(all []FleetTrace) {
	order := make([]*FleetTrace, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	rank := func(t *FleetTrace) int {
		switch {
		case t.Part < 0:
			return 0
		case len(t.Notes) > 0:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(x, y *FleetTrace) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(y.Live.Bytes, x.Live.Bytes))
	})
	b.data.LeftRows = max(0, len(order)-maxTraces)
	for _, t := range order[:min(maxTraces, len(order))] {
		part := otherFrame
		if t.Part >= 0 {
			part = b.parts[t.Part]
		}
		notes := strings.Join(t.Notes[:min(maxRemarks, len(t.Notes))], "\n")
		b.data.Traces = append(b.data.Traces, []any{b.text(t.File), b.text(t.Host), b.text(t.Service), b.text(t.State), part, t.Calls, t.Growing, usesOfUse(&t.Use), b.text(notes)})
	}
}

// addStacks adds the stacks. Those that do not fit are added up by part.
func (b *fleetBuilder) addStacks(all []FleetStack) {
	s := &b.data.Stacks
	*s = fleetRows{[]int{}, []int{}, []int{}, []uses{}, 0, 0}
	var total uses
	of := make([]uses, len(all))
	order, score := make([]int, len(all)), make([]float64, len(all))
	for i := range all {
		of[i], order[i] = usesOfUse(&all[i].Use), i
		total.add(&of[i])
	}
	for i := range of {
		score[i] = of[i].share(&total)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(score[y], score[x]) })
	add := func(node, part, site int, u *uses) {
		s.Node, s.Part, s.Site, s.Uses = append(s.Node, node), append(s.Part, part), append(s.Site, site), append(s.Uses, *u)
	}
	numbers := make(map[string]uint32)
	rest := make(map[int]*uses)
	var parts []int
	for _, i := range order {
		row := &all[i]
		part := b.parts[row.Part]
		if len(s.Node) < maxStacks {
			if node, whole := b.path(b.numbers(numbers, row), maxNodes); whole {
				add(node, part, b.sites[row.Site], &of[i])
				continue
			}
		}
		s.Left++
		if rest[part] == nil {
			rest[part] = new(uses)
			parts = append(parts, part)
		}
		rest[part].add(&of[i])
	}
	s.First = len(s.Node)
	for _, part := range parts {
		add(b.child(0, otherFrame), part, otherFrame, rest[part])
	}
}

// numbers returns the numbers of a stack's frames in the result, to which it adds them.
func (b *fleetBuilder) numbers(known map[string]uint32, row *FleetStack) (frames []uint32) {
	var key []byte
	for i := range row.Frames {
		f := &row.Frames[i]
		key = append(f.AppendKey(key[:0]), f.Position...)
		n, ok := known[string(key)]
		if !ok {
			n = uint32(len(b.result.Frames))
			known[string(key)] = n
			b.result.Frames = append(b.result.Frames, *f)
			b.frames = append(b.frames, 0)
		}
		frames = append(frames, n)
	}
	return frames
}
