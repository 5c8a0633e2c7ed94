package heapview

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/timeline"
)

// In the data of a page, addresses of regions are text. All other numbers are
// exact as floating point numbers, which scripts use.

// meta is the data of a page except for the blocks.
type meta struct {
	Name    string       `json:"name"`
	Events  uint64       `json:"events"`
	First   uint64       `json:"first"` // event after which the map begins
	Event   uint64       `json:"event"` // event that the page shows first
	Step    uint64       `json:"step"`  // events between exact states
	Peak    peak         `json:"peak"`
	Regions []metaRegion `json:"regions"`
	Left    int          `json:"left"`   // regions that are left out
	Merged  bool         `json:"merged"` // whether there are columns for the numbers of blocks and bytes
	View    *metaView    `json:"view"`   // range that is shown first; null for all
	Sites   []string     `json:"sites"`
	Threads []string     `json:"threads"`
	Curve   curveData    `json:"curve"`
	Colours []string     `json:"colours"` // names, by heapmap.Cell
}

type peak struct {
	Event  uint64 `json:"event"`
	Blocks uint64 `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
}

// metaRegion is a region with its numbers of blocks and ranges.
type metaRegion struct {
	Start    string `json:"start"`
	Size     uint64 `json:"size"`
	Blocks   int    `json:"blocks"`
	Heap     int    `json:"heap"`
	Internal int    `json:"internal"`
	Freed    int    `json:"freed"`
}

// metaView is a range of a region.
type metaView struct {
	Region int    `json:"region"`
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
}

// curveData holds the live bytes in intervals of events.
type curveData struct {
	Width    uint64   `json:"width"`
	Least    []uint64 `json:"least"`
	Most     []uint64 `json:"most"`
	Reserved []uint64 `json:"reserved"`
}

func newCurve(t *timeline.Timeline) curveData {
	c := curveData{Width: t.Width()}
	for _, p := range t.Points() {
		c.Least = append(c.Least, p.Bytes.Min)
		c.Most = append(c.Most, p.Bytes.Max)
		c.Reserved = append(c.Reserved, p.Reserved)
	}
	return c
}

// columns holds numbers in LEB128, column after column.
type columns []byte

func (c *columns) add(v uint64) { *c = binary.AppendUvarint(*c, v) }

// signed adds a signed difference in zigzag encoding: 0, -1, 1, -2 …
func (c *columns) signed(v int64) { *c = binary.AppendVarint(*c, v) }

// addRuns adds the columns of blocks: the distance from the previous block or
// from the start of the region, the size, the difference of the births, the
// lifetime, the thread and the site, and if blocks were merged the bytes and
// the number of blocks.
func (c *columns) addRuns(runs []run, merged bool) {
	region, offset := uint32(0), uint64(0)
	for _, r := range runs {
		if r.region != region {
			region, offset = r.region, 0
		}
		c.add(r.offset - offset)
		offset = r.offset
	}
	column := func(f func(*run) uint64) {
		for i := range runs {
			c.add(f(&runs[i]))
		}
	}
	column(func(r *run) uint64 { return r.size })
	before := uint64(0)
	for _, r := range runs {
		c.signed(int64(r.born - before))
		before = r.born
	}
	column(func(r *run) uint64 { return r.life })
	column(func(r *run) uint64 { return uint64(r.thread) })
	column(func(r *run) uint64 { return uint64(r.site) })
	if merged {
		column(func(r *run) uint64 { return r.bytes })
		column(func(r *run) uint64 { return uint64(r.count) })
	}
}

// addSpans adds the ranges of a region: the gap before each, the length, the
// event.
func (c *columns) addSpans(list []heapmap.Span) {
	at := uint64(0)
	for _, s := range list {
		c.add(s.Start - at)
		c.add(s.Last - s.Start + 1)
		c.add(s.Since)
		at = s.Last + 1
	}
}

// pack compresses data and encodes it as text.
func pack(data []byte) (string, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// encode returns the data of a page. The blocks take at most limit bytes. If
// they do not fit, encode first leaves out blocks that are visible only between
// larger steps, then merges neighbours.
func encode(m *heapmap.Map, o Options, limit int) (*meta, string, error) {
	d := &meta{
		Name: o.Name, Events: m.Events(), First: m.First(), Event: o.Event, Left: o.Left,
		Peak: peak(m.Peak()),
	}
	for _, c := range colours() {
		d.Colours = append(d.Colours, c.Name)
	}
	runs := d.collect(m, o.Regions)
	step, slack := m.Step(), uint64(16)
	for {
		d.Step = step
		text, err := pack(d.columns(m, o.Regions, runs))
		if err != nil {
			return nil, "", fmt.Errorf("packing the blocks of the page: %w", err)
		}
		if len(text) <= limit || len(runs) <= 1 {
			return d, text, nil
		}
		// Slightly fewer than would fit if all had the same length.
		fit := int(float64(len(runs)) * float64(limit) / float64(len(text)) * 0.95)
		for more := true; more && len(runs) > fit; {
			if more = m.Coarsen(); more {
				runs = d.collect(m, o.Regions)
			}
		}
		step = max(step, m.Step())
		for len(runs) > max(1, fit) && slack < 1<<62 {
			d.Merged = true
			runs = merge(runs, step, slack, m.Peak().Event, o.Event)
			slack *= 2
			if step <= m.Events() {
				step *= 2
			}
		}
		if slack >= 1<<62 {
			limit = len(text) // it cannot get smaller
		}
	}
}

func (d *meta) collect(m *heapmap.Map, regions []heapmap.Region) []run {
	runs := collect(m, regions)
	d.names(m, runs)
	return runs
}

// columns returns the columns and counts their entries for each region.
func (d *meta) columns(m *heapmap.Map, regions []heapmap.Region, runs []run) columns {
	c := make(columns, 0, 12*len(runs))
	c.addRuns(runs, d.Merged)
	d.Regions = d.Regions[:0]
	for _, r := range regions {
		d.Regions = append(d.Regions, metaRegion{Start: "0x" + strconv.FormatUint(r.Start, 16), Size: r.Size()})
	}
	for _, r := range runs {
		d.Regions[r.region].Blocks++
	}
	for i, r := range regions {
		heap, internal, freed := clip(m.Heap(), r), clip(m.Internal(), r), clip(m.Freed(), r)
		d.Regions[i].Heap, d.Regions[i].Internal, d.Regions[i].Freed = len(heap), len(internal), len(freed)
		c.addSpans(heap)
		c.addSpans(internal)
		c.addSpans(freed)
	}
	return c
}

// maxSites is the largest number of different sites in a page.
const maxSites = 1 << 14

// names sets the texts of the threads and of the sites with the most blocks,
// and assigns the runs their site numbers.
func (d *meta) names(m *heapmap.Map, runs []run) {
	d.Threads = make([]string, m.Threads())
	for i := range d.Threads {
		d.Threads[i] = strconv.FormatUint(m.Thread(uint32(i)), 10)
	}
	counts := make([]int, m.Sites()+1)
	for i := range runs {
		counts[runs[i].site]++
	}
	order := make([]uint32, 0, len(counts))
	for n := range counts {
		if n > 0 && counts[n] > 0 {
			order = append(order, uint32(n))
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return counts[b] - counts[a] })
	order = order[:min(len(order), maxSites)]
	d.Sites = make([]string, len(order))
	numbers := make([]uint32, len(counts))
	for i, n := range order {
		s := m.Site(n - 1)
		text := s.Function
		if place := s.Frame.String(); place != "" && place != sites.Unknown {
			text += " in " + place
		}
		d.Sites[i] = text
		numbers[n] = uint32(i) + 1
	}
	for i := range runs {
		runs[i].site = numbers[runs[i].site]
	}
}
