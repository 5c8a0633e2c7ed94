package usage

import "rtrace-bpf/internal/live"

// Ledger adds up the blocks of groups, which are numbered from 0, and of all
// groups together. Its user follows the blocks. The zero Ledger is empty.
type Ledger struct {
	groups []group
	total  Usage  // Live includes Unknown
	peaks  uint64 // how often the bytes of all groups reached a new maximum
}

// group is a Usage whose Live includes Unknown, and whose AtPeak is up to date
// only if peaks equals Ledger.peaks. Otherwise AtPeak is Live, which has not
// changed since.
type group struct {
	Usage
	peaks uint64
}

// at returns a group that is about to change.
func (l *Ledger) at(n int) *group {
	for n >= len(l.groups) {
		l.groups = append(l.groups, group{peaks: l.peaks})
	}
	g := &l.groups[n]
	g.settle(l.peaks)
	return g
}

func (g *group) settle(peaks uint64) {
	if g.peaks != peaks {
		g.AtPeak, g.peaks = g.Live, peaks
	}
}

// Began counts a block of a group that began to live.
func (l *Ledger) Began(n int, size uint64) {
	g := l.at(n)
	g.Allocated.AddBlock(size)
	g.Live.AddBlock(size)
	if g.Live.Above(g.Peak) {
		g.Peak = g.Live
	}
	l.total.Allocated.AddBlock(size)
	l.total.Live.AddBlock(size)
	if l.total.Live.Above(l.total.Peak) {
		l.total.Peak = l.total.Live
		l.peaks++
	}
}

// Ended counts a block that ended, for whatever reason. With [live.Absent] it
// does nothing.
func (l *Ledger) Ended(n int, size uint64, fate live.Fate) {
	if fate == live.Absent {
		return
	}
	l.Dropped(n, live.Amount{Blocks: 1, Bytes: size})
	if fate == live.Unknown {
		l.groups[n].Unknown.SubBlock(size)
		l.total.Unknown.SubBlock(size)
	}
}

// Dropped counts blocks that ended together, none of which was unknown.
func (l *Ledger) Dropped(n int, a live.Amount) {
	l.at(n).Live.Sub(a)
	l.total.Live.Sub(a)
}

// Temporary counts a block, which ended, as a temporary one.
func (l *Ledger) Temporary(n int, size uint64) {
	l.groups[n].Temporary.AddBlock(size)
	l.total.Temporary.AddBlock(size)
}

// Unknown counts a live block that became unknown.
func (l *Ledger) Unknown(n int, size uint64) {
	l.groups[n].Unknown.AddBlock(size)
	l.total.Unknown.AddBlock(size)
}

// Len returns one more than the largest number of a group with blocks.
func (l *Ledger) Len() int { return len(l.groups) }

// Of returns the usage of a group so far.
func (l *Ledger) Of(n int) Usage {
	if n >= len(l.groups) {
		return Usage{}
	}
	g := &l.groups[n]
	g.settle(l.peaks)
	return g.withoutUnknown()
}

// Total returns the usage of all groups so far. Its Peak and AtPeak are the
// same.
func (l *Ledger) Total() Usage {
	u := l.total.withoutUnknown()
	u.AtPeak = u.Peak
	return u
}

// withoutUnknown returns a Usage whose Live does not include Unknown.
func (u *Usage) withoutUnknown() Usage {
	out := *u
	out.Live.Sub(u.Unknown)
	return out
}
