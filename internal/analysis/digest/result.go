package digest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Result is the result of a Digest.
type Result struct {
	Facts
	Frames    []sites.Frame // indexed by the numbers in stacks
	Resources []*Resource   // those with calls: memory first, then in the order of the trace
	Marks     []Mark
	RSS       *rss.Growth // of the process; nil if the trace lacks the figures
	Intervals Intervals   // of cells
	Recording Recording   // the zero Recording without times
}

// Resource holds the figures of one type of resource.
type Resource struct {
	Type, Desc string
	RefCount   bool
	Sampled    bool // the trace has only samples of its allocations, and no frees
	Calls      usage.Calls
	Total      Use
	Freed      live.Amount
	Unmatched  uint64 // frees of blocks that were not live
	Replaced   uint64 // live blocks that ended because another one began at their address
	Young      Young
	Largest    uint64 // largest size; if it is at most 1, sizes are meaningless
	// Peak is the largest amount that was live or unknown, by bytes and then by
	// blocks. PeakBlocks is the largest number of blocks.
	Peak       live.Amount
	PeakEvent  uint64
	PeakTime   int64
	PeakBlocks uint64
	Stacks     Quality

	ByEvent, ByTime Curve
	Sizes           []Bin // bytes
	LifeEvents      []Bin // lifetimes of freed blocks, in events
	LifeTimes       []Bin // lifetimes of freed blocks, in nanoseconds
	Places          []Place
	Functions       []Group
	Modules         []Group
	Threads         []Thread
	Processes       []Process
	APIs            []API
	Cells           []Cell
}

// Curve is the live amount along an axis.
type Curve struct {
	Width  uint64 // width of an interval
	Points []timeline.Point
}

// Quality counts the stacks of allocations.
type Quality struct {
	Whole     uint64 // complete, or from a format without this information
	Truncated uint64 // cut at the limit of frames
	Failed    uint64
	Absent    uint64
	Callers   uint64 // no stack, but the caller is known
	Deepest   int    // largest number of frames
}

// Place is a stack that allocated.
type Place struct {
	Frames []uint32 // the innermost first
	Use
	// Event and Time are those of the allocation of the oldest block that is
	// live at the end; 0 if none is.
	Event uint64
	Time  int64
}

// Group is a function or module. A function has no file and line.
type Group struct {
	sites.Frame
	Self  Use // allocations that it called directly
	Total Use // allocations with it anywhere in the stack
}

// Thread is a thread that allocated.
type Thread struct {
	PID  int32
	ID   uint64 // kernel's ID, or the format's substitute for it
	TID  bool   // whether ID is the kernel's
	Name string
	Use
}

// Process is a process that allocated.
type Process struct {
	PID  int32 // negative for the second and later traces of a file without process IDs
	Name string
	Use
}

// API is a traced function.
type API struct {
	Name  string
	Op    trace.Op
	Calls uint64
	Bytes uint64 // requested
}

// Finish returns the result. The Digest must not be used afterwards.
func (d *Digest) Finish() *Result {
	for i := range d.rows {
		if r := &d.rows[i]; !r.named {
			d.frames.name(r)
		}
	}
	d.fates()
	r := &Result{
		Facts: d.facts, Frames: d.frames.all, Marks: d.contexts.finish(),
		Intervals: Intervals{Time: d.cells.time, Width: d.cells.Width(), Events: d.cells.Events()},
	}
	if r.Traces < 2 {
		r.Duration = d.clock.Last()
		r.Recording = d.recording.finish(&d.clock, r.Duration)
	}
	whole := true // whether no allocation or free can be missing
	for _, l := range r.Lost {
		whole = whole && !l.HidesFrees
	}
	var memory, unknown live.Amount
	for _, of := range d.resources.types {
		of.Young.Recorded, of.Young.Live = time.Duration(r.Duration), of.Total.Live.Blocks
		if whole {
			of.Young.Before = of.Unmatched
		}
		if of.Type == Memory {
			memory, unknown = of.Total.Live, of.Total.Unknown
		}
		if of.Calls.All > 0 {
			d.finish(of)
			r.Resources = append(r.Resources, &of.Resource)
		}
	}
	r.RSS = d.rss.Growth(rss.Live{
		Blocks: memory.Blocks, Bytes: memory.Bytes, UnknownBlocks: unknown.Blocks, UnknownBytes: unknown.Bytes,
	})
	slices.SortStableFunc(r.Resources, func(a, b *Resource) int {
		switch {
		case a.Type == Memory:
			return -1
		case b.Type == Memory:
			return 1
		}
		return 0
	})
	return r
}

// fates counts the remaining blocks as live or unknown.
func (d *Digest) fates() {
	// The amounts at the peak must be settled before unknown blocks are
	// subtracted from Live.
	for i := range d.rows {
		d.rows[i].use.settle(d.event+1, d.resources.types[d.rows[i].resource].PeakEvent)
	}
	for _, of := range d.resources.types {
		for i := range of.threads.uses {
			of.threads.uses[i].settle(d.event+1, of.PeakEvent)
		}
		of.Total.AtPeak = of.Peak
		of.Total.Live = of.live
		of.Young.Usual = of.lives.Usual()
	}
	for _, p := range d.processes.All() {
		for k := range p.sampled {
			d.cells.KeepAll(k.cell)
		}
	}
	for _, blocks := range d.blocks.All() {
		for e, fate := range blocks {
			l := d.lives.At(e.Value)
			in := &d.cells.all[l.cell]
			row := &d.rows[in.row]
			of := d.resources.types[row.resource]
			d.cells.Kept(l.cell, l.born, e.Size, fate == live.Known)
			if fate == live.Known {
				row.born(*l)
				if d.clock.Last()-l.made < int64(of.Young.Usual) {
					of.Young.Young++
				}
				continue
			}
			of.unfreed[sizeBin(e.Size)].SubBlock(e.Size)
			for _, u := range [...]*Use{&row.use.Use, &of.threads.uses[in.thread].Use, &of.Total} {
				u.Live.SubBlock(e.Size)
				u.Unknown.AddBlock(e.Size)
			}
		}
	}
}

// Young holds the figures that show whether blocks live at the end may well be
// freed soon.
type Young = live.Young

// The doubts that Young.Judge returns.
const (
	ManyFromBefore   = live.ManyFromBefore
	ShorterThanUsual = live.ShorterThanUsual
	MostlyYoung      = live.MostlyYoung
)

// finish builds the tables of a resource.
func (d *Digest) finish(of *resource) {
	of.ByEvent = Curve{of.byEvent.Width(), of.byEvent.Points()}
	of.ByTime = Curve{of.byTime.Width(), of.byTime.Points()}
	of.Sizes = binsOf(&of.sizes, &of.unfreed)
	of.LifeEvents, of.LifeTimes = binsOf(&of.ages, nil), timeBinsOf(of.times)
	threads := d.threadsOf(of)
	for _, a := range slices.SortedFunc(maps.Values(of.apis.byKey), func(a, b *API) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name), cmp.Compare(a.Op, b.Op))
	}) {
		of.APIs = append(of.APIs, *a)
	}
	var index stackIndex
	processes := make(map[int32]int)
	places := make([]int, len(d.rows)) // by row
	for i := range d.rows {
		r := &d.rows[i]
		if int(r.resource) != of.number {
			continue
		}
		n := index.find(of.Places, r.stack)
		places[i] = n
		if n == len(of.Places) {
			of.Places = append(of.Places, Place{Frames: r.stack})
		}
		p := &of.Places[n]
		p.add(&r.use.Use)
		if o := &r.oldest; o.event > 0 && r.use.Live.Blocks > 0 && (p.Event == 0 || o.event < p.Event) {
			p.Event, p.Time = o.event, o.time
		}
		n, ok := processes[r.pid]
		if !ok {
			n = len(of.Processes)
			processes[r.pid] = n
			of.Processes = append(of.Processes, Process{PID: r.pid, Name: d.names.programs[r.pid]})
		}
		of.Processes[n].add(&r.use.Use)
	}
	of.Functions = d.frames.groups(of.Places, func(f sites.Frame) sites.Frame {
		f.ToFunction()
		return f
	})
	of.Modules = d.frames.groups(of.Places, func(f sites.Frame) sites.Frame { return sites.Frame{Place: sites.Place{Module: f.Module}} })
	sorted := sortBy(of.Places, func(a, b *Place) int {
		if n := compare(&a.Use, &b.Use); n != 0 {
			return n
		}
		return slices.Compare(a.Frames, b.Frames)
	})
	for i, n := range places {
		if n < len(sorted) {
			places[i] = sorted[n]
		}
	}
	of.Cells = d.cells.ofResource(d.rows, of, places, threads)
	slices.SortStableFunc(of.Processes, func(a, b Process) int { return compare(&a.Use, &b.Use) })
}

// threadsOf adds the threads of a resource, and returns their indexes by their numbers.
func (d *Digest) threadsOf(of *resource) []int {
	numbers := make([]int, len(of.threads.uses))
	for i := range of.threads.uses {
		u := &of.threads.uses[i]
		if u.Allocated.Blocks == 0 {
			continue
		}
		t := of.threads.At(uint32(i))
		numbers[i] = len(of.Threads)
		of.Threads = append(of.Threads, Thread{PID: t.PID, ID: t.ID, TID: t.TID > 0, Name: d.names.threads[t.ThreadKey], Use: u.Use})
	}
	sorted := sortBy(of.Threads, func(a, b *Thread) int { return compare(&a.Use, &b.Use) })
	for i, n := range numbers {
		if n < len(sorted) {
			numbers[i] = sorted[n]
		}
	}
	return numbers
}

// sortBy sorts all, and returns the new index of each item by its old one.
func sortBy[T any](all []T, compare func(a, b *T) int) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(&all[a], &all[b]) })
	old, index := slices.Clone(all), make([]int, len(all))
	for to, from := range order {
		all[to], index[from] = old[from], to
	}
	return index
}

// groups sums up places by their frames after reduce.
func (s *frames) groups(places []Place, reduce func(sites.Frame) sites.Frame) []Group {
	var (
		names  frames
		groups []Group
		of     = make([]uint32, len(s.all)) // 1 + the group of each frame
		seen   []int                        // 1 + the last place that had the group
	)
	for i := range places {
		p := &places[i]
		for depth, n := range p.Frames {
			if of[n] == 0 {
				f := reduce(s.all[n])
				of[n] = names.add(&f) + 1
				if int(of[n]) > len(groups) {
					groups, seen = append(groups, Group{Frame: f}), append(seen, 0)
				}
			}
			g := of[n] - 1
			if depth == 0 {
				groups[g].Self.add(&p.Use)
			}
			if seen[g] != i+1 {
				seen[g] = i + 1
				groups[g].Total.add(&p.Use)
			}
		}
	}
	slices.SortFunc(groups, func(a, b Group) int {
		if n := cmp.Or(compare(&a.Self, &b.Self), compare(&a.Total, &b.Total)); n != 0 {
			return n
		}
		return cmp.Or(strings.Compare(a.Function, b.Function), strings.Compare(a.Module, b.Module), cmp.Compare(a.Addr, b.Addr), strings.Compare(a.File, b.File))
	})
	return groups
}

func (u *Use) add(v *Use) {
	u.Allocated.Add(v.Allocated)
	u.Live.Add(v.Live)
	u.Unknown.Add(v.Unknown)
	u.AtPeak.Add(v.AtPeak)
	u.Temporary.Add(v.Temporary)
}

// compare orders by the live amount, then by the allocated amount, the largest
// first.
func compare(a, b *Use) int {
	return cmp.Or(
		cmp.Compare(b.Live.Bytes, a.Live.Bytes), cmp.Compare(b.Live.Blocks, a.Live.Blocks),
		cmp.Compare(b.Allocated.Bytes, a.Allocated.Bytes), cmp.Compare(b.Allocated.Blocks, a.Allocated.Blocks),
	)
}
