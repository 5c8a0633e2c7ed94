package pagemap

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

func allocated(seq, id, size uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Call: trace.Call{Seq: seq, Op: trace.OpAlloc, ID: id, Size: size}}
}

func seqs(calls []*trace.Record) (all []uint64) {
	for _, c := range calls {
		all = append(all, c.Call.Seq)
	}
	return all
}

func TestBlocks(t *testing.T) {
	areas := []Area{{Start: 0x3000, End: 0x5000}, {Start: 0x1000, End: 0x2000}, {Start: 0x5000, End: ^uint64(0)}}
	b := NewBlocks(areas)
	b.Sizes, b.Top, b.Bottom = true, 2, 3
	for seq, id := range []uint64{0x3100, 0x4fff, 0x3100, 0x3000, 0x1fff, 0x2000, 0xfff, 0x5000, 0x4000, ^uint64(0)} {
		b.Add(allocated(uint64(seq), id, 1))
	}
	free := allocated(99, 0x3000, 1)
	free.Call.Op = trace.OpFree
	b.Add(free)
	b.Add(&trace.Record{Kind: trace.KindComment})
	for i, want := range []struct {
		blocks    []uint64
		low, high []uint64
	}{
		{[]uint64{0x3000, 0x3100, 0x3100, 0x4000, 0x4fff}, []uint64{3, 0, 2}, []uint64{1, 8}},
		{[]uint64{0x1fff}, []uint64{4}, []uint64{4}},
		{[]uint64{0x5000}, []uint64{7}, []uint64{7}},
	} {
		var got []uint64
		for _, x := range b.Of(i) {
			got = append(got, x.Address)
		}
		if !slices.Equal(got, want.blocks) || !slices.Equal(seqs(b.Lowest(i)), want.low) || !slices.Equal(seqs(b.Highest(i)), want.high) {
			t.Errorf("area %d: blocks %x, lowest %d, highest %d; want %+v", i, got, seqs(b.Lowest(i)), seqs(b.Highest(i)), want)
		}
	}
}

// row is one call of Rows to yield.
type row struct {
	Page  uint64
	Bytes []uint64
}

func rows(t *testing.T, a Area, size uint64, blocks ...Block) (all []row) {
	t.Helper()
	err := Rows(&a, blocks, size, 4, func(page uint64, bytes []uint64) error {
		if len(all) > 100 {
			t.Fatal("too many rows")
		}
		all = append(all, row{page, slices.Clone(bytes)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRows(t *testing.T) {
	const top = ^uint64(0)
	for _, tt := range []struct {
		name   string
		a      Area
		blocks []Block
		want   []row
	}{
		{"none", Area{Start: 0x1000, End: 0x4000}, nil, []row{{0, []uint64{0, 0, 0}}}},
		{
			"in and across pages",
			Area{Start: 0x1000, End: 0x7000},
			[]Block{{0x1000, 10}, {0x100a, 5}, {0x1ff0, 0x1020}, {0x4f00, 0x200}, {0x6000, 0}, {0x6ff0, 0x100}},
			[]row{{0, []uint64{31, 4096, 16, 256}}, {4, []uint64{256, 16}}},
		},
		{"over each other", Area{Start: 0, End: 0x2000}, []Block{{0, 0x2000}, {8, 0x1800}}, []row{{0, []uint64{0x2000 - 8, 0x1000 + 0x808}}}},
		{"at the end of all", Area{Start: top - 0x2fff, End: top}, []Block{{top - 0x1fff, 0x1800}, {top - 1, top}}, []row{{0, []uint64{0, 0x1000}}}},
		{"huge and empty", Area{Start: 0, End: 1 << 60}, nil, []row{
			{0, []uint64{0, 0, 0, 0}}, {1<<48 - 4, []uint64{0, 0, 0, 0}},
		}},
		{"huge", Area{Start: 0, End: 1 << 60}, []Block{{0x5800, 0x10000000}, {1 << 50, 1}}, []row{
			{0, []uint64{0, 0, 0, 0}},
			{4, []uint64{0, 0x800, 0x1000, 0x1000}},
			{8, []uint64{0x1000, 0x1000, 0x1000, 0x1000}},
			{0x10004, []uint64{0x1000, 0x800, 0, 0}},
			{0x10008, []uint64{0, 0, 0, 0}},
			{1 << 38, []uint64{1, 0, 0, 0}},
			{1<<38 + 4, []uint64{0, 0, 0, 0}},
			{1<<48 - 4, []uint64{0, 0, 0, 0}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, rows(t, tt.a, 4096, tt.blocks...)); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
		})
	}
	stop := errors.New("stop")
	if err := Rows(&Area{End: 0x1000}, nil, 4096, 4, func(uint64, []uint64) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}
