package speedscope_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/speedscope"
)

// TestWrite checks a file against the published schema: the required fields,
// equal numbers of weights and samples, samples as indexes of shared frames
// from the outermost on, and an end that is the sum of the weights.
func TestWrite(t *testing.T) {
	p := &stacks.Profile{
		Name: "demo\x1b",
		Locations: []stacks.Location{
			{Lines: []stacks.Line{{Function: "inlined", File: "a.c", Line: 3}, {Function: "f<int>&", File: "a.c", Line: 9}}},
			{Lines: []stacks.Line{{Function: "main", File: "a.c", Line: 20}}},
			{Lines: []stacks.Line{{}}},
		},
		Samples: []stacks.Sample{
			{Stack: []int{0, 1}, Usage: usage.Usage{Allocated: live.Amount{Blocks: 2, Bytes: 30}, Live: live.Amount{Blocks: 1, Bytes: 10}}},
			{Stack: []int{1}, Usage: usage.Usage{Allocated: live.Amount{Blocks: 1, Bytes: 5}}},
			{Stack: []int{2}, Usage: usage.Usage{Allocated: live.Amount{Blocks: 1, Bytes: 4}, Live: live.Amount{Blocks: 1, Bytes: 4}}},
		},
	}
	var out bytes.Buffer
	if err := speedscope.Write(&out, p, stacks.AllocSpace); err != nil {
		t.Fatal(err)
	}
	type frame struct {
		Name string `json:"name"`
		File string `json:"file"`
		Line int    `json:"line"`
	}
	type profile struct {
		Type    string  `json:"type"`
		Name    string  `json:"name"`
		Unit    string  `json:"unit"`
		Start   *uint64 `json:"startValue"`
		End     uint64  `json:"endValue"`
		Samples [][]int
		Weights []uint64
	}
	var got struct {
		Schema   string `json:"$schema"`
		Name     string `json:"name"`
		Exporter string `json:"exporter"`
		Active   int    `json:"activeProfileIndex"`
		Shared   struct {
			Frames []frame `json:"frames"`
		} `json:"shared"`
		Profiles []profile `json:"profiles"`
	}
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "https://www.speedscope.app/file-format-schema.json" || got.Name != "demo?" || got.Exporter == "" || got.Active != 2 {
		t.Errorf("head: %+v", got)
	}
	frames := []frame{{"main", "a.c", 20}, {"f<int>&", "a.c", 9}, {"inlined", "a.c", 3}, {"??", "", 0}}
	if diff := cmp.Diff(frames, got.Shared.Frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	zero := new(uint64)
	deep, shallow, unknown := []int{0, 1, 2}, []int{0}, []int{3}
	want := []profile{
		{"sampled", "inuse_space", "bytes", zero, 14, [][]int{deep, unknown}, []uint64{10, 4}},
		{"sampled", "inuse_objects", "none", zero, 2, [][]int{deep, unknown}, []uint64{1, 1}},
		{"sampled", "alloc_space", "bytes", zero, 39, [][]int{deep, shallow, unknown}, []uint64{30, 5, 4}},
		{"sampled", "alloc_objects", "none", zero, 4, [][]int{deep, shallow, unknown}, []uint64{2, 1, 1}},
	}
	if diff := cmp.Diff(want, got.Profiles); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

// TestWriteNothing checks that an empty profile has all lists that the schema
// requires.
func TestWriteNothing(t *testing.T) {
	var out bytes.Buffer
	if err := speedscope.Write(&out, &stacks.Profile{}, stacks.InuseSpace); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"frames":[]`, `"samples":[]`, `"weights":[]`, `"startValue":0`, `"endValue":0`} {
		if !bytes.Contains(out.Bytes(), []byte(part)) {
			t.Errorf("no %s in %s", part, &out)
		}
	}
}
