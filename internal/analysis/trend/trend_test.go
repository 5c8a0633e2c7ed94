package trend

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/live"
)

// TestHistory compares with the blocks themselves, at any time.
func TestHistory(t *testing.T) {
	type block struct {
		began int64
		size  uint64
	}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var (
			parts  [2]History
			sum    History
			blocks [2][]block
			levels = map[int64]live.Amount{} // by time
			now    = int64(0)
		)
		pace := int64(1) << (16 + rnd.IntN(16))
		for range 500 {
			now += rnd.Int64N(pace)
			n := rnd.IntN(2)
			if len(blocks[n]) > 0 && rnd.IntN(5) < 2 {
				at := rnd.IntN(len(blocks[n]))
				b := blocks[n][at]
				blocks[n] = slices.Delete(blocks[n], at, at+1)
				parts[n].Ended(now, b.began, b.size)
				sum.Ended(now, b.began, b.size)
			} else {
				b := block{now, rnd.Uint64N(1000)}
				blocks[n] = append(blocks[n], b)
				parts[n].Began(now, b.size)
				sum.Began(now, b.size)
			}
			var level live.Amount
			for _, of := range blocks {
				for _, b := range of {
					level.AddBlock(b.size)
				}
			}
			levels[now] = level
		}
		now += rnd.Int64N(pace * 500)
		got := sum.At(now)
		got.of = nil // a sum is no copy
		both := parts[0].At(now)
		both.Add(parts[1].At(now))
		if d := cmp.Diff(got, both, cmp.AllowUnexported(History{}, slot{})); d != "" {
			t.Fatalf("seed %d: parts that are added (-whole +sum):\n%s", seed, d)
		}
		if n := now >> got.shift; n >= maxSlots || got.shift > firstShift && n < maxSlots/2 {
			t.Errorf("seed %d: %d slots", seed, n)
		}
		for i, s := range got.slots {
			var left, level live.Amount
			for _, of := range blocks {
				for _, b := range of {
					if b.began>>got.shift == int64(got.from)+int64(i) {
						left.AddBlock(b.size)
					}
				}
			}
			last := int64(-1)
			for at, l := range levels {
				if at < got.end(i) && at > last {
					last, level = at, l
				}
			}
			if live := (live.Amount{Blocks: uint64(s.left), Bytes: s.bytes}); live != left {
				t.Fatalf("seed %d: slot %d has %v left, want %v", seed, i, live, left)
			}
			if live := (live.Amount{Blocks: uint64(s.level), Bytes: s.amount}); live != level {
				t.Fatalf("seed %d: slot %d has level %v, want %v", seed, i, live, level)
			}
		}
	}
}

func TestSlope(t *testing.T) {
	var x, y []float64
	for i := range 20 {
		x, y = append(x, float64(i)), append(y, 5+3*float64(i))
	}
	if m, half := slope(x, y); m != 3 || half != 0 {
		t.Errorf("a line: %g ± %g", m, half)
	}
	y[7], y[15] = 1000, -1000
	if m, half := slope(x, y); math.Abs(m-3) > 0.01 || half > 3 {
		t.Errorf("with outliers: %g ± %g", m, half)
	}
	if m, half := slope([]float64{1}, []float64{2}); m != 0 || half != 0 {
		t.Errorf("one point: %g ± %g", m, half)
	}
	if m, _ := slope([]float64{1, 1}, []float64{2, 9}); m != 0 {
		t.Errorf("one time: %g", m)
	}
}

// program makes the calls of one call site, in seconds.
type program struct {
	h History
	f Figures
}

func (p *program) alloc(at float64) { p.h.Began(int64(at*1e9), 100); p.f.Allocated++ }

func (p *program) free(at, began float64) {
	p.h.Ended(int64(at*1e9), int64(began*1e9), 100)
	p.f.Freed++
	p.f.Lifetimes[bits.Len64(uint64((at-began)*1e9))]++
}

func TestJudge(t *testing.T) {
	const end = 100.0
	for _, tt := range []struct {
		name string
		run  func(p *program)
		kind Kind
		want string // for Growing: rate, start, blocks older than the age, freed ones
	}{
		{"nothing", func(*program) {}, Empty, ""},
		{"all freed", func(p *program) {
			for at := 0.0; at < end; at++ {
				p.alloc(at)
				p.free(at+0.5, at)
			}
		}, Empty, ""},
		{"a leak", func(p *program) {
			for at := 0.0; at < end; at += 0.5 {
				p.alloc(at)
			}
		}, Growing, "2.0/s 200 B/s start true"},
		{"a leak of every tenth block", func(p *program) {
			n := 0
			for at := 0.0; at < end; at += 0.1 {
				p.alloc(at)
				if n++; n%10 != 0 {
					p.free(at+0.05, at)
				}
			}
		}, Growing, "1.0/s 100 B/s start true"},
		{"a leak from the middle on", func(p *program) {
			for at := end / 2; at < end; at += 0.1 {
				p.alloc(at)
			}
		}, Growing, "10.0/s 1001 B/s start false"},
		{"a leak that stopped", func(p *program) {
			for at := 0.0; at < end/2; at += 0.1 {
				p.alloc(at)
			}
		}, Level, ""},
		{"a table", func(p *program) {
			for range 1000 {
				p.alloc(1)
			}
		}, Level, ""},
		{"a full cache", func(p *program) {
			for i := range 1000 {
				p.alloc(float64(i) / 10)
				if i >= 300 {
					p.free(float64(i)/10, float64(i-300)/10)
				}
			}
		}, Level, ""},
		{"a buffer that is flushed", func(p *program) {
			for i := range 1000 {
				p.alloc(float64(i) / 10)
				for k := i - 249; i%250 == 249 && k <= i; k++ {
					p.free(float64(i)/10, float64(k)/10)
				}
				if i == 930 {
					break
				}
			}
		}, Varying, ""},
		{"too few", func(p *program) {
			for at := 0.0; at < end; at += 25 {
				p.alloc(at)
			}
		}, Level, ""},
	} {
		p := new(program)
		tt.run(p)
		p.f.Now = int64(end * 1e9)
		got := Judge(p.h.At(p.f.Now), &p.f)
		text := ""
		if got.Kind == Growing {
			text = fmt.Sprintf("%.1f/s %.0f B/s start %v", got.Blocks.PerSecond, got.Bytes.PerSecond, got.Start)
		}
		if got.Kind != tt.kind || text != tt.want {
			t.Errorf("%s: kind %d, %s, want kind %d, %s (%+v)", tt.name, got.Kind, text, tt.kind, tt.want, got)
		}
		p.f.Now = 5 << firstShift
		if got := Judge(new(History).At(p.f.Now), &p.f); got.Kind != Empty {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// TestGap: what was allocated before a gap in the recording is no evidence.
func TestGap(t *testing.T) {
	p := new(program)
	for at := 0.0; at < 100; at += 0.5 {
		p.alloc(at)
	}
	p.f.Now, p.f.Since = 100e9, 90e9
	if got := Judge(p.h.At(p.f.Now), &p.f); got.Kind == Growing {
		t.Errorf("%+v", got)
	}
	p.f.Since = 40e9
	if got := Judge(p.h.At(p.f.Now), &p.f); got.Kind != Growing || got.Start || got.Since < 40e9 {
		t.Errorf("%+v", got)
	}
}

// TestShort: a recording of some milliseconds proves nothing.
func TestShort(t *testing.T) {
	p := new(program)
	for i := range 1000 {
		p.alloc(float64(i) * 1e-5)
	}
	p.f.Now = 10e6
	if got := Judge(p.h.At(p.f.Now), &p.f); got.Kind != Unclear {
		t.Errorf("%+v", got)
	}
}

// TestBalanced: what is allocated while blocks from before the recording are freed
// may be no growth.
func TestBalanced(t *testing.T) {
	for _, tt := range []struct {
		from, to, pace float64
		want           Kind
	}{
		{0, 100, 1, Balanced}, {0, 100, 5, Growing}, {0, 50, 0.5, Growing}, {70, 100, 0.5, Balanced}, {0, 65, 0.1, Growing},
	} {
		p := new(program)
		for at := 0.0; at < 100; at++ {
			p.alloc(at)
		}
		p.f.Now = 100e9
		var before History
		for at := tt.from; at < tt.to; at += tt.pace {
			before.Began(int64(at*1e9), 0)
		}
		p.f.Before = before.At(p.f.Now)
		if got := Judge(p.h.At(p.f.Now), &p.f); got.Kind != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

func TestCompare(t *testing.T) {
	trends := []Trend{
		{Kind: Level, Live: live.Amount{Blocks: 1, Bytes: 10}},
		{Kind: Growing, Bytes: Rate{PerSecond: 1}, Live: live.Amount{Blocks: 1, Bytes: 99}},
		{Kind: Varying, Live: live.Amount{Blocks: 1, Bytes: 100}},
		{Kind: Growing, Bytes: Rate{PerSecond: 2}},
	}
	slices.SortFunc(trends, func(a, b Trend) int { return a.Compare(&b) })
	for i, want := range []float64{2, 1, 0, 0} {
		if trends[i].Bytes.PerSecond != want {
			t.Fatalf("%+v", trends)
		}
	}
	if trends[2].Kind != Varying {
		t.Errorf("%+v", trends)
	}
}
