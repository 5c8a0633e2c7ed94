package topview

import (
	"iter"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
)

// key identifies an item: something whose figures are followed from snapshot to snapshot.
type key struct {
	kind By    // BySite, ByThread or BySize
	n    int64 // number of the site, thread id, or number of the smallest size
	pid  int32 // of a thread
}

// keyOf returns the key of a call site.
func keyOf(site int) key { return key{kind: BySite, n: int64(site)} }

// item is the figures of a call site, of a thread or of a range of sizes.
type item struct {
	key
	live, allocated live.Amount
	freed, unknown  live.Amount // of sites
	oldest          int64       // when its oldest live block was allocated; -1 if there is none or it is not known
	from, to        uint64      // sizes
	others          bool        // the sum of the remaining threads
}

// items returns the figures that the rows of a grouping are made of. Each item is valid until the
// next one.
func items(s *Snapshot, by By, from Source) iter.Seq[*item] {
	switch by {
	case ByThread:
		return summed(s, from, threads)
	case BySize:
		return summed(s, from, sizes)
	}
	return func(yield func(*item) bool) {
		var x item
		for i := range s.Sites {
			at := &s.Sites[i]
			x = item{key: keyOf(at.Number), live: at.Live, allocated: at.Allocated, freed: at.Freed, unknown: at.Unknown, oldest: at.Oldest}
			if !yield(&x) {
				return
			}
		}
	}
}

// summed returns the sums of items over all call sites, in the order in which they occur. parts
// returns those of one site.
func summed(s *Snapshot, from Source, parts func(*aggregate.Site, *aggregate.Detail) iter.Seq[item]) iter.Seq[*item] {
	return func(yield func(*item) bool) {
		numbers := make(map[key]int)
		var all []item
		for i := range s.Sites {
			d := from.Detail(s.Sites[i].Number)
			for x := range parts(&s.Sites[i], &d) {
				n, known := numbers[x.key]
				if !known {
					numbers[x.key] = len(all)
					all = append(all, x)
					continue
				}
				all[n].live.Add(x.live)
				all[n].allocated.Add(x.allocated)
			}
		}
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// threads returns the threads of a call site.
func threads(site *aggregate.Site, d *aggregate.Detail) iter.Seq[item] {
	return func(yield func(item) bool) {
		for _, t := range d.Threads {
			x := item{key: key{kind: ByThread, n: int64(t.TID), pid: site.PID}, live: t.Live, allocated: t.Allocated, oldest: -1, others: t.Others}
			if t.Others {
				x.n = -1
			}
			if !yield(x) {
				return
			}
		}
	}
}

// sizes returns the ranges of sizes of a call site.
func sizes(_ *aggregate.Site, d *aggregate.Detail) iter.Seq[item] {
	return func(yield func(item) bool) {
		for _, z := range d.Sizes {
			if !yield(item{key: key{kind: BySize, n: int64(z.From)}, live: z.Live, allocated: z.Allocated, oldest: -1, from: z.From, to: z.To}) {
				return
			}
		}
	}
}
