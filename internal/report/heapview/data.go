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

// The data of a page. Addresses of regions are text; all else is exact as a
// floating point number, which is what scripts have.

// meta is all but the blocks.
type meta struct {
	Name    string       `json:"name"`
	Events  uint64       `json:"events"`
	First   uint64       `json:"first"` // event after which the map begins
	Event   uint64       `json:"event"` // where the page begins
	Step    uint64       `json:"step"`  // events between states that are exact
	Peak    peak         `json:"peak"`
	Regions []metaRegion `json:"regions"`
	Left    int          `json:"left"`   // regions that are not there
	Merged  bool         `json:"merged"` // there are columns for the numbers of blocks and bytes
	View    *metaView    `json:"view"`   // what is shown first; null for all
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

// metaRegion is a region, and how many blocks and stretches of it there are.
type metaRegion struct {
	Start    string `json:"start"`
	Size     uint64 `json:"size"`
	Blocks   int    `json:"blocks"`
	Heap     int    `json:"heap"`
	Internal int    `json:"internal"`
	Freed    int    `json:"freed"`
}

// metaView is a stretch of a region.
type metaView struct {
	Region int    `json:"region"`
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
}

// curveData is how many bytes were live, in intervals of events.
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

// columns are numbers as LEB128, one column after the other.
type columns []byte

func (c *columns) add(v uint64) { *c = binary.AppendUvarint(*c, v) }

// signed adds a difference, zigzag: 0, -1, 1, -2 …
func (c *columns) signed(v int64) { *c = binary.AppendVarint(*c, v) }

// addRuns adds the columns of blocks: the distance from the one before or from
// the start of the region, the size, the difference of the births, the life,
// thread, site, and if some are merged the bytes and the number of blocks.
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

// addSpans adds the stretches of a region: the gap in front, the length, the event.
func (c *columns) addSpans(list []heapmap.Span) {
	at := uint64(0)
	for _, s := range list {
		c.add(s.Start - at)
		c.add(s.Last - s.Start + 1)
		c.add(s.Since)
		at = s.Last + 1
	}
}

// pack compresses data into text.
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

// encode makes the data of a page. The blocks take at most limit bytes: if they
// do not fit, first those are left out that can only be seen between steps that
// are larger, then neighbours become one.
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
		// A little less than would fit if all were as long.
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
			limit = len(text) // as small as it gets
		}
	}
}

func (d *meta) collect(m *heapmap.Map, regions []heapmap.Region) []run {
	runs := collect(m, regions)
	d.names(m, runs)
	return runs
}

// columns makes the columns and counts what is in them for each region.
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

// maxSites is how many different sites a page tells.
const maxSites = 1 << 14

// names sets the texts of threads and of the sites that most blocks are of, and
// gives the runs the numbers of these.
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
