package digestview

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"rtrace-bpf/internal/analysis/cube"
	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/live"
)

// maxCells limits the encoded cells of a page, in bytes before base64. If there are more, intervals
// are joined.
const maxCells = 1_500_000

// intervalData describes the intervals by which the page filters. Interval i ends at the time
// (i+1)*Width, if the page has times, and after Events[i] calls.
type intervalData struct {
	Width  uint64   `json:"width"` // nanoseconds; 0 without times
	Events []uint64 `json:"events"`
}

// cellOf is a cell whose place and thread are those of the page.
type cellOf struct {
	stack, thread int // thread is -1 for those without a row
	class         uint8
	parts         []cube.Part
}

// cells adds the cells of all resources, with the longest intervals that are needed to keep the page
// small.
func (b *builder) cells(resources []*digest.Resource) {
	k := &b.result.Intervals
	b.Intervals = intervalData{Events: k.Events}
	if len(k.Events) == 0 {
		b.Intervals.Events = []uint64{}
		return
	}
	all := make([][]cellOf, len(resources))
	for i, of := range resources {
		for _, c := range of.Cells {
			all[i] = append(all[i], cellOf{b.rowsOf[i].places[c.Place], b.rowsOf[i].threads[c.Thread], c.Class, c.Parts})
		}
		slices.SortFunc(all[i], compareCells)
	}
	shift := uint(0)
	var encoded [][]byte
	for ; ; shift++ {
		encoded = encoded[:0]
		size := 0
		for i := range all {
			encoded = append(encoded, encodeCells(all[i], shift))
			size += len(encoded[i])
		}
		if size <= maxCells || len(k.Events)>>shift == 0 {
			break
		}
	}
	b.Intervals.Events = nil
	for i := 0; i < len(k.Events); i += 1 << shift {
		b.Intervals.Events = append(b.Intervals.Events, k.Events[min(i+1<<shift, len(k.Events))-1])
	}
	if k.Time && b.Duration > 0 {
		b.Intervals.Width = k.Width << shift
	}
	for i := range encoded {
		b.Resources[i].Cells = base64.StdEncoding.EncodeToString(encoded[i])
	}
}

func compareCells(a, b cellOf) int {
	return cmp.Or(cmp.Compare(a.stack, b.stack), cmp.Compare(a.thread, b.thread), cmp.Compare(a.class, b.class))
}

// encodeCells encodes sorted cells, with each 1<<shift intervals joined. Numbers are unsigned
// varints. A cell begins with the difference of its stack to that of the cell before, 1 + its thread,
// its class, 1 + the size of all its blocks or 0 if they differ, and the number of its parts. A part is
// the difference of its interval to that of the part before, a set of the amounts that it has, and
// these: blocks, and bytes if sizes differ.
func encodeCells(all []cellOf, shift uint) []byte {
	var out []byte
	var parts []cube.Part
	stack := 0
	for i := 0; i < len(all); {
		c := &all[i]
		first := i
		parts = parts[:0]
		for ; i < len(all) && compareCells(all[i], *c) == 0; i++ {
			for _, p := range all[i].parts {
				p.Interval >>= shift
				parts = append(parts, p)
			}
		}
		if i > first+1 {
			slices.SortStableFunc(parts, func(a, b cube.Part) int { return cmp.Compare(a.Interval, b.Interval) })
		}
		parts = joined(parts)
		out = binary.AppendUvarint(out, uint64(c.stack-stack))
		stack = c.stack
		out = binary.AppendUvarint(out, uint64(1+c.thread))
		out = append(out, c.class)
		out = appendParts(out, parts)
	}
	return out
}

// joined adds up neighbours of the same interval, in place.
func joined(parts []cube.Part) []cube.Part {
	out := parts[:0]
	for i := range parts {
		if n := len(out); n > 0 && out[n-1].Interval == parts[i].Interval {
			out[n-1].Add(&parts[i])
			continue
		}
		out = append(out, parts[i])
	}
	return out
}

// amountsOf returns the amounts of a part in the order of the page.
func amountsOf(p *cube.Part) [5]live.Amount {
	return [...]live.Amount{p.Made, p.Ended, p.Temporary, p.Kept, p.Unknown}
}

func appendParts(out []byte, parts []cube.Part) []byte {
	size := uniform(parts)
	out = binary.AppendUvarint(out, size)
	out = binary.AppendUvarint(out, uint64(len(parts)))
	before := uint32(0)
	for i := range parts {
		out = binary.AppendUvarint(out, uint64(parts[i].Interval-before))
		before = parts[i].Interval
		set := len(out)
		out = append(out, 0)
		for bit, a := range amountsOf(&parts[i]) {
			if a.Blocks == 0 {
				continue
			}
			out[set] |= 1 << bit
			out = binary.AppendUvarint(out, a.Blocks)
			if size == 0 {
				out = binary.AppendUvarint(out, a.Bytes)
			}
		}
	}
	return out
}

// uniform returns 1 + the size with which all amounts are blocks of one size, or 0 if there is none.
func uniform(parts []cube.Part) uint64 {
	size := uint64(0)
	for i := range parts {
		for _, a := range amountsOf(&parts[i]) {
			switch {
			case a.Blocks == 0:
			case a.Bytes%a.Blocks != 0 || a.Bytes/a.Blocks == 1<<64-1:
				return 0
			case size == 0:
				size = 1 + a.Bytes/a.Blocks
			case size != 1+a.Bytes/a.Blocks:
				return 0
			}
		}
	}
	return size
}
