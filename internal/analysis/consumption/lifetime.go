package consumption

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"rtrace-bpf/internal/live"
)

// MaxLines is the largest number of blocks that a report of lifetimes shows
// individually.
const MaxLines = 20

// maxMasks is the largest number of sets of contexts whose lines are
// distinguished.
const maxMasks = 16

// Line is the lifetime of a block.
type Line struct {
	ID, Size uint64
	Context  uint32
	From, To int64 // on the axis of the curves
}

// Lives holds the lifetimes of the blocks of a type of resource.
type Lives struct {
	// Lines holds the first lifetimes, at most MaxLines of all resources
	// together.
	Lines []Line
	// Masks holds the lifetimes of all blocks, by the contexts in which they
	// were allocated, in the order in which the first block of each ended.
	Masks []*Mask
	// Average and Median are those of the sizes of all allocations, rounded
	// down.
	Average, Median uint64
}

// Mask holds the lifetimes of all blocks that were allocated in the same
// contexts.
type Mask struct {
	Context uint32
	Others  bool // for all contexts without a Mask of their own
	rows    map[uint64][]uint64
	columns int
	series  int
}

// lifetimes is the report of when each block was allocated and freed.
type lifetimes struct {
	*plot
	lines uint64 // so far
}

// livesOf returns the Lives of a kind.
func livesOf(k *Kind) *Lives {
	if k.Lives == nil {
		k.Lives = new(Lives)
	}
	return k.Lives
}

// add adds the lifetime of a block, which ends at the given positions.
func (t *lifetimes) add(k *Kind, id, size uint64, born life, at, place int64) {
	l := livesOf(k)
	m := t.mask(k, l, born.context)
	write := func(series int) {
		t.sink.Point(series, born.at, size)
		t.sink.Point(series, at, size)
		t.sink.Break(series)
	}
	write(m.series)
	width := uint64(t.span.Width()) + 1
	m.draw(size, column(born.place, m.columns, width), column(place, m.columns, width))
	if t.lines++; t.lines <= MaxLines {
		l.Lines = append(l.Lines, Line{id, size, born.context, born.place, place})
		write(t.sink.Begin(Lifetime, heading(fmt.Sprintf("%s (0x%x)", k.Type, id))))
	}
}

func (t *lifetimes) mask(k *Kind, l *Lives, context uint32) *Mask {
	others := !t.options.Legacy && len(l.Masks) >= maxMasks
	for _, m := range l.Masks {
		if m.Context == context && !m.Others || m.Others && others {
			return m
		}
	}
	m := &Mask{Context: context, rows: make(map[uint64][]uint64), columns: fit(t.options.Columns, t.span.Width())}
	name := fmt.Sprintf(`%s (\\@%x)`, k.Type, context)
	if others {
		m.Others, name = true, k.Type+" (others)"
	}
	m.series = t.sink.Begin(Lifetime, heading(name))
	l.Masks = append(l.Masks, m)
	return m
}

// draw marks the columns of a lifetime in the row of similar sizes.
func (m *Mask) draw(size uint64, from, to int) {
	key := rowOf(size)
	row := m.rows[key]
	if row == nil {
		row = make([]uint64, (m.columns+63)/64)
		m.rows[key] = row
	}
	for i := from; i <= to; {
		if i%64 == 0 && i+63 <= to {
			row[i/64] = ^uint64(0)
			i += 64
			continue
		}
		row[i/64] |= 1 << (i % 64)
		i++
	}
}

// rowOf truncates a size to its eight most significant bits, to limit the
// number of rows.
func rowOf(size uint64) uint64 {
	if n := bits.Len64(size); n > 8 {
		return size >> (n - 8) << (n - 8)
	}
	return size
}

// Columns returns the number of columns of the rows.
func (m *Mask) Columns() int { return m.columns }

// Row holds the runs of columns, first and last, in which blocks lived.
type Row struct {
	Key  int
	Runs [][2]int
}

// Rows returns the lifetimes of all blocks, in rows of sizes with the same key,
// by key. Sizes are truncated to eight significant bits.
func (m *Mask) Rows(key func(size uint64) int) []Row {
	sets := make(map[int][]uint64)
	for size, set := range m.rows {
		k := key(size)
		if sets[k] == nil {
			sets[k] = make([]uint64, len(set))
		}
		for i, word := range set {
			sets[k][i] |= word
		}
	}
	rows := make([]Row, 0, len(sets))
	for k, set := range sets {
		rows = append(rows, Row{k, runs(set, m.columns)})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}

// runs returns the runs of set bits among the first n.
func runs(set []uint64, n int) (out [][2]int) {
	has := func(i int) bool { return i < n && set[i/64]>>(i%64)&1 == 1 }
	for i := 0; i < n; i++ {
		if !has(i) {
			continue
		}
		from := i
		for has(i + 1) {
			i++
		}
		out = append(out, [2]int{from, i})
	}
	return out
}

// flush ends the lines of all live blocks.
func (t *lifetimes) flush(table *live.Table, lives *live.Values[life], at, place int64) {
	left := make([]live.Entry, 0, table.Len())
	for e := range table.All() {
		left = append(left, e)
	}
	slices.SortFunc(left, func(a, b live.Entry) int {
		if c := cmp.Compare(a.Resource, b.Resource); c != 0 {
			if t.options.Legacy {
				return cmp.Compare(t.kinds[a.Resource].Type, t.kinds[b.Resource].Type)
			}
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	})
	for _, e := range left {
		t.add(t.kinds[e.Resource], e.ID, e.Size, *lives.At(e.Value), at, place)
	}
}

// finish writes the lines of the average and the median.
func (t *lifetimes) finish() {
	from, to := t.span.First, t.span.Last
	if t.options.Legacy {
		to = 0
		for _, k := range t.Kinds() {
			to = max(to, k.lastAlloc)
		}
	}
	if to <= from {
		to = from + 1
		if !t.span.Calls {
			to = from + millisecond
		}
	}
	for _, k := range t.Kinds() {
		l := livesOf(k)
		sizes := k.Sizes()
		l.Average = k.Allocated.Bytes / max(1, k.Allocated.Blocks)
		l.Median = median(sizes, func(s *SizeCount) uint64 { return s.Allocated }, t.options.Legacy)
		for _, x := range []struct {
			name  string
			value uint64
		}{{"average", l.Average}, {"median", l.Median}} {
			n := t.sink.Begin(Lifetime, heading(fmt.Sprintf("%s(%s:%d)", k.Type, x.name, x.value)))
			t.sink.Point(n, from, x.value)
			t.sink.Point(n, to, x.value)
		}
	}
}
