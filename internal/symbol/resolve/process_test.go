package resolve

import (
	"math/rand/v2"
	"testing"

	"rtrace-bpf/trace"
)

// TestMappingsLikeBytes compares the mappings after random changes with a plain list that
// holds the owner of each address.
func TestMappingsLikeBytes(t *testing.T) {
	const space = 200
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"/a", "/b", "/c", "/d"}
	for round := range 200 {
		r := New(Options{})
		var owners [space]string
		for range 40 {
			start, end := random.Uint64N(space), random.Uint64N(space+1)
			name := names[random.IntN(len(names))]
			rec := trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: start, End: end, Path: name}}
			if random.IntN(3) == 0 {
				rec.Kind, name = trace.KindUnmapping, ""
			}
			r.Observe(&rec)
			for at := start; at < end; at++ {
				owners[at] = name
			}
		}
		for at, want := range owners {
			if _, got, _ := r.Name(uint64(at) + 1); got != want {
				t.Fatalf("round %d: %d is in %q, want %q", round, at, got, want)
			}
		}
		maps := r.Process(0).maps
		for i := range maps {
			if maps[i].start >= maps[i].end || i > 0 && maps[i].start < maps[i-1].end {
				t.Fatalf("round %d: mapping %d is empty or overlaps: %+v", round, i, maps)
			}
		}
	}
}
