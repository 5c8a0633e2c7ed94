package heapview

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"io"
	"testing"
)

// unpacked decodes the columns of blocks.
func unpacked(t *testing.T, d *meta, text string) []run {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	next := func() uint64 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			t.Fatal("the columns end early")
		}
		data = data[n:]
		return v
	}
	var runs []run
	for i, r := range d.Regions {
		at := uint64(0)
		for range r.Blocks {
			at += next()
			runs = append(runs, run{region: uint32(i), offset: at, count: 1})
		}
	}
	for i := range runs {
		runs[i].size = next()
		runs[i].bytes = runs[i].size
	}
	before := uint64(0)
	for i := range runs {
		v := next()
		before += v>>1 ^ -(v & 1)
		runs[i].born = before
	}
	for i := range runs {
		runs[i].life = next()
	}
	for i := range runs {
		runs[i].thread = uint32(next())
	}
	for i := range runs {
		runs[i].site = uint32(next())
	}
	if d.Merged {
		for i := range runs {
			runs[i].bytes = next()
		}
		for i := range runs {
			runs[i].count = uint32(next())
		}
	}
	for _, r := range d.Regions {
		for range 3 * (r.Heap + r.Internal + r.Freed) {
			next()
		}
	}
	if len(data) > 0 {
		t.Fatalf("%d bytes after the columns", len(data))
	}
	return runs
}

// The data stay within their limit. The live blocks are exact at each step, at
// the peak, at Options.Event and at the end, whatever was left out or merged.
func TestEncodeWithinLimit(t *testing.T) {
	for _, tt := range []struct {
		name            string
		n, limit        int
		lasting         bool
		coarser, merged bool
	}{
		{"all fits", 3000, 1 << 20, false, false, false},
		{"not all that is short", 6000, 20000, false, true, false},
		{"blocks that all last", 4000, 6000, true, true, true},
		{"next to nothing", 2000, 10, true, true, true},
	} {
		w := build(1, tt.n, tt.lasting)
		d, text, err := encode(w.m, w.options(uint64(tt.n/3)), tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		runs := unpacked(t, d, text)
		if (d.Step > 1) != tt.coarser || d.Merged != tt.merged || len(text) > max(tt.limit, 200) {
			t.Errorf("%s: step %d, merged %v, %d bytes in %d runs", tt.name, d.Step, d.Merged, len(text), len(runs))
		}
		events := []uint64{d.Peak.Event, d.Event, uint64(tt.n)}
		for event := uint64(0); event <= uint64(tt.n); event += d.Step {
			events = append(events, event)
		}
		for _, event := range events {
			var blocks, sum uint64
			for _, r := range runs {
				if r.born <= event && (r.life == 0 || event < r.born+r.life) {
					blocks += uint64(r.count)
					sum += r.bytes
				}
			}
			if want := w.levels[event]; blocks != want.Blocks || sum != want.Bytes {
				t.Fatalf("%s: %d blocks and %d bytes after event %d, want %+v", tt.name, blocks, sum, event, want)
			}
		}
		if len(d.Sites) == 0 || len(d.Threads) != 3 || d.Peak.Event == 0 {
			t.Errorf("%s: %d sites, %d threads, peak %+v", tt.name, len(d.Sites), len(d.Threads), d.Peak)
		}
	}
}
