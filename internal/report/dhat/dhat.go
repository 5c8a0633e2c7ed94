// Package dhat writes profiles in the format of DHAT, valgrind's dynamic heap
// analysis tool. Tests read it with valgrind's dh_view.html. The Firefox
// Profiler imports the format as well, which no test shows.
//
// The fields are those of version 2 of the format, as valgrind's
// dhat/dh_main.c documents them. A file has no accesses to memory, because a
// trace has none. Times are in microseconds.
package dhat

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
)

// Version is the version of the format.
const Version = 2

// short is the average lifetime, in microseconds, up to which a viewer offers
// to list the blocks of a stack as short-lived ones.
const short = 500

// file is a whole profile. Its fields are in the order of valgrind's files.
type file struct {
	Version   int    `json:"dhatFileVersion"`
	Mode      string `json:"mode"`
	Verb      string `json:"verb"`
	Lifetimes bool   `json:"bklt"`
	Accesses  bool   `json:"bkacc"`
	Unit      string `json:"tu"`  // of times
	Million   string `json:"Mtu"` // a million of them
	Short     int    `json:"tuth"`
	Command   string `json:"cmd"`
	PID       int32  `json:"pid"`
	Peak      int64  `json:"tg"` // when most bytes were live
	End       int64  `json:"te"`

	Points []point  `json:"pps"`
	Frames []string `json:"ftbl"`
}

// point is a program point: the blocks of a stack.
type point struct {
	Bytes      uint64 `json:"tb"` // all that were allocated
	Blocks     uint64 `json:"tbk"`
	Lived      uint64 `json:"tl"` // sum of the lifetimes of all blocks
	MaxBytes   uint64 `json:"mb"` // when most bytes of this point were live
	MaxBlocks  uint64 `json:"mbk"`
	PeakBytes  uint64 `json:"gb"` // when most bytes of all points were live
	PeakBlocks uint64 `json:"gbk"`
	EndBytes   uint64 `json:"eb"`
	EndBlocks  uint64 `json:"ebk"`
	Stack      []int  `json:"fs"` // indexes of frames, the innermost first
}

// Write writes a profile. Blocks that are unknown at the end do not count as
// live. The format has no main value, so v is not used. Write does not close w.
func Write(w io.Writer, p *stacks.Profile, _ stacks.Value) error {
	f := file{
		Version: Version, Mode: "heap", Verb: "Allocated", Lifetimes: true,
		Unit: "µs", Million: "s", Short: short,
		Command: sites.Printable(p.Name), PID: p.PID,
		Peak: p.PeakTime.Microseconds(), End: p.Span.Microseconds(),
		Points: []point{},
	}
	t := table{numbers: make(map[string]int)}
	t.frame("[root]")
	points := make(map[string]int) // by stack: viewers refuse a stack that occurs twice
	for i := range p.Samples {
		x := pointOf(&p.Samples[i])
		x.Stack = t.stack(p, p.Samples[i].Stack)
		key := keyOf(x.Stack)
		n, ok := points[key]
		if !ok {
			points[key] = len(f.Points)
			f.Points = append(f.Points, x)
			continue
		}
		f.Points[n].add(&x)
	}
	f.Frames = t.texts
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&f); err != nil {
		return err
	}
	return b.Flush()
}

func pointOf(s *stacks.Sample) point {
	return point{
		Bytes: s.Allocated.Bytes, Blocks: s.Allocated.Blocks, Lived: s.Lived,
		MaxBytes: s.Peak.Bytes, MaxBlocks: s.Peak.Blocks,
		PeakBytes: s.AtPeak.Bytes, PeakBlocks: s.AtPeak.Blocks,
		EndBytes: s.Live.Bytes, EndBlocks: s.Live.Blocks,
	}
}

// add adds the blocks of a point with the same stack. The sum of their own
// peaks is an upper bound.
func (x *point) add(y *point) {
	for _, s := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&x.Bytes, y.Bytes},
		{&x.Blocks, y.Blocks},
		{&x.Lived, y.Lived},
		{&x.MaxBytes, y.MaxBytes},
		{&x.MaxBlocks, y.MaxBlocks},
		{&x.PeakBytes, y.PeakBytes},
		{&x.PeakBlocks, y.PeakBlocks},
		{&x.EndBytes, y.EndBytes},
		{&x.EndBlocks, y.EndBlocks},
	} {
		*s.to += s.from
	}
}

// table numbers the texts of frames.
type table struct {
	texts   []string
	numbers map[string]int
}

func (t *table) frame(text string) int {
	n, ok := t.numbers[text]
	if !ok {
		n = len(t.texts)
		t.texts = append(t.texts, text)
		t.numbers[text] = n
	}
	return n
}

// stack returns the frames of a stack, the innermost first. A stack without
// frames has an unknown one.
func (t *table) stack(p *stacks.Profile, locations []int) []int {
	frames := []int{}
	for _, n := range locations {
		l := &p.Locations[n]
		if len(l.Lines) == 0 {
			frames = append(frames, t.frame(unnamed(l)))
		}
		for i := range l.Lines {
			frames = append(frames, t.frame(address(l)+text(&l.Lines[i])))
		}
	}
	if len(frames) == 0 {
		frames = append(frames, t.frame(sites.Unknown))
	}
	return frames
}

// unnamed returns the text of a frame without a function.
func unnamed(l *stacks.Location) string {
	if l.Mapping.Path == "" {
		return address(l) + sites.Unknown
	}
	return address(l) + sites.Unknown + " (in " + sites.Printable(l.Mapping.Path) + ")"
}

// address returns the address of a frame as DHAT spells it, or nothing if it is
// unknown.
func address(l *stacks.Location) string {
	if l.Addr == 0 {
		return ""
	}
	return fmt.Sprintf("0x%X: ", l.Addr)
}

func text(l *stacks.Line) string {
	name := l.Function
	if name == "" {
		name = sites.Unknown
	}
	switch {
	case l.File == "":
	case l.Line == 0:
		name += " (" + l.File + ")"
	default:
		name += fmt.Sprintf(" (%s:%d)", l.File, l.Line)
	}
	return sites.Printable(name)
}

func keyOf(stack []int) string {
	var key []byte
	for _, n := range stack {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return string(key)
}
