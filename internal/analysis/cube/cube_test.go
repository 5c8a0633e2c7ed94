package cube

import (
	"math/rand/v2"
	"testing"

	"rtrace-bpf/internal/live"
)

// block is a block of the model.
type block struct {
	cell       uint32
	born, size uint64
}

// When parts are too many, intervals are joined until they fit; the amounts of each cell before and
// after any position that is an edge of intervals stay the same.
func TestJoined(t *testing.T) {
	const most, cells = 4000, 100
	r := rand.New(rand.NewPCG(1, 1))
	var (
		c     = Cube{most: most}
		made  []block
		ended []block // born is the end
		kept  []block
		now   []block
	)
	for range cells {
		c.Cell()
	}
	position, event := uint64(0), uint64(0)
	for range most * 3 / 2 {
		position += uint64(r.IntN(9))
		event++
		c.At(position, event)
		if n := len(now); n > 0 && r.IntN(3) == 0 {
			i := r.IntN(n)
			b := now[i]
			now[i] = now[n-1]
			now = now[:n-1]
			c.Ended(b.cell, live.Amount{Blocks: 1, Bytes: b.size})
			ended = append(ended, block{b.cell, position, b.size})
			continue
		}
		b := block{uint32(r.IntN(cells)), position, uint64(r.IntN(100))}
		c.Made(b.cell, b.size)
		made, now = append(made, b), append(now, b)
	}
	for _, b := range now {
		if c.Kept(b.cell, b.born, b.size, b.size%2 == 0); b.size%2 == 0 {
			kept = append(kept, b)
		}
	}
	if n := len(c.Events()); n < 8 || n > 64 || c.count > most {
		t.Fatalf("%d intervals, %d parts", n, c.count)
	}
	type key struct {
		cell     uint32
		interval uint64
	}
	for what, x := range map[string]struct {
		all []block
		of  func(*Part) live.Amount
	}{
		"made": {made, func(p *Part) live.Amount { return p.Made }}, "ended": {ended, func(p *Part) live.Amount { return p.Ended }}, "kept": {kept, func(p *Part) live.Amount { return p.Kept }},
	} {
		want := map[key]live.Amount{}
		for _, b := range x.all {
			k := key{b.cell, b.born / c.Width()}
			a := want[k]
			a.AddBlock(b.size)
			want[k] = a
		}
		for cell := range uint32(cells) {
			before := -1
			for _, p := range c.Parts(cell) {
				if int(p.Interval) <= before {
					t.Fatalf("%s: interval %d of cell %d after %d", what, p.Interval, cell, before)
				}
				before = int(p.Interval)
				k := key{cell, uint64(p.Interval)}
				if got := x.of(&p); got != want[k] {
					t.Fatalf("%s: %v of %v, want %v", what, got, k, want[k])
				}
				delete(want, k)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: %d parts are missing", what, len(want))
		}
	}
	if got := c.Events()[len(c.Events())-1]; got != event {
		t.Errorf("%d events, want %d", got, event)
	}
}
