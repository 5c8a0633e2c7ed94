// Package speedscope writes profiles in the file format of the viewer
// speedscope: JSON, with a table of frames and one list of stacks with weights
// for each value.
package speedscope

import (
	"bufio"
	"encoding/json"
	"io"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
)

// Schema is the value of "$schema" in a file.
const Schema = "https://www.speedscope.app/file-format-schema.json"

type file struct {
	Schema   string    `json:"$schema"`
	Name     string    `json:"name"`
	Exporter string    `json:"exporter"`
	Active   int       `json:"activeProfileIndex"`
	Shared   shared    `json:"shared"`
	Profiles []profile `json:"profiles"`
}

type shared struct {
	Frames []frame `json:"frames"`
}

type frame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line uint64 `json:"line,omitempty"`
}

type profile struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Start   uint64   `json:"startValue"`
	End     uint64   `json:"endValue"`
	Samples [][]int  `json:"samples"` // numbers of frames, the outermost first
	Weights []uint64 `json:"weights"`
}

// Write writes all values of a profile. v is the value that the viewer shows
// first. Write does not close w.
func Write(w io.Writer, p *stacks.Profile, v stacks.Value) error {
	f := file{
		Schema: Schema, Name: sites.Printable(p.Name), Exporter: "rtrace",
		Shared: shared{Frames: []frame{}},
	}
	if p.Estimated {
		f.Name += ": " + sites.Printable(p.Comments[0])
	}
	numbers := make(map[frame]int)
	samples := make([][]int, len(p.Samples))
	for i := range p.Samples {
		samples[i] = []int{}
		p.Frames(p.Samples[i].Stack, func(l stacks.Line) {
			x := frame{sites.Printable(l.Function), sites.Printable(l.File), l.Line}
			if x.Name == "" {
				x.Name = sites.Unknown
			}
			n, ok := numbers[x]
			if !ok {
				n = len(f.Shared.Frames)
				numbers[x] = n
				f.Shared.Frames = append(f.Shared.Frames, x)
			}
			samples[i] = append(samples[i], n)
		})
	}
	for i, known := range p.Known() {
		f.Profiles = append(f.Profiles, values(p, known, samples))
		if known == v {
			f.Active = i
		}
	}
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&f); err != nil {
		return err
	}
	return b.Flush()
}

// values returns the samples whose value v is not 0.
func values(p *stacks.Profile, v stacks.Value, samples [][]int) profile {
	out := profile{Type: "sampled", Name: v.String(), Unit: "none", Samples: [][]int{}, Weights: []uint64{}}
	if v.Unit() == "bytes" {
		out.Unit = "bytes"
	}
	for i := range p.Samples {
		if n := v.Of(&p.Samples[i].Usage); n > 0 {
			out.Samples = append(out.Samples, samples[i])
			out.Weights = append(out.Weights, n)
			out.End += n
		}
	}
	return out
}
