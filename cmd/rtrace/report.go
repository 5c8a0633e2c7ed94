package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/report/figure"
)

// report is the output of 'rtrace info', and of --json. Times are nanoseconds.
type report struct {
	File        fileReport       `json:"file"`
	Arch        string           `json:"arch,omitempty"`
	BigEndian   bool             `json:"big_endian,omitempty"`
	PointerSize int              `json:"pointer_size,omitempty"`
	Origin      string           `json:"origin,omitempty"`
	Filter      string           `json:"filter,omitempty"`
	Process     *processReport   `json:"process,omitempty"`
	Time        timeReport       `json:"time"`
	Records     []kindReport     `json:"records"`
	Calls       uint64           `json:"calls"`
	Functions   []functionReport `json:"functions"`
	Resources   []resourceReport `json:"resources"`
	Budget      *budgetReport    `json:"budget,omitempty"` // of a recording in windows
	Cost        *costReport      `json:"cost,omitempty"`   // if known
	RSS         *rss.Growth      `json:"rss,omitempty"`    // bytes; if known
	Heap        *heapReport      `json:"heap,omitempty"`   // if known
	Unmatched   uint64           `json:"unmatched_frees"`
	Replaced    uint64           `json:"allocated_twice"`
	LostEvents  uint64           `json:"lost_events"`
	Lost        []lostReport     `json:"lost"`
	Stacks      stackReport      `json:"stacks"`
	Threads     int              `json:"threads"`
	Modules     int              `json:"modules"`
	// Streams are all streams of a file that has several; all other fields are for the
	// first.
	Streams []*report `json:"streams,omitempty"`
}

type fileReport struct {
	Format      string   `json:"format"`
	Version     string   `json:"version,omitempty"`
	Compression []string `json:"compression,omitempty"`
	SideFile    string   `json:"side_file,omitempty"`
	Skipped     uint64   `json:"skipped_packets,omitempty"`
	Complete    bool     `json:"complete"`
}

type processReport struct {
	PID      int32  `json:"pid"`
	Name     string `json:"name"`
	WallTime int64  `json:"wall_time,omitempty"` // since 1970
	Depth    int    `json:"depth"`               // -1 if unknown
}

type timeReport struct {
	First    int64  `json:"first"`
	Last     int64  `json:"last"`
	Duration int64  `json:"duration"`
	Clock    string `json:"clock"`
}

type kindReport struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
}

type functionReport struct {
	Function string `json:"function"`
	Op       string `json:"op"`
	Resource uint32 `json:"resource"`
	Calls    uint64 `json:"calls"`
	Bytes    uint64 `json:"bytes"`
}

type amount struct {
	Blocks uint64 `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
}

func (a *amount) add(b amount) {
	a.Blocks += b.Blocks
	a.Bytes += b.Bytes
}

type resourceReport struct {
	ID   uint32 `json:"id"`
	Type string `json:"type,omitempty"`
	usage.Calls
	Allocated amount `json:"allocated"`
	Temporary amount `json:"temporary"`
	Live      amount `json:"live"`
	Unknown   amount `json:"unknown"` // live when the recording had a gap
	Peak      amount `json:"peak"`    // when most bytes were live or unknown
	// Sampled means that only some allocations are in the trace: Live is their number and
	// the bytes that they represent.
	Sampled bool `json:"sampled,omitempty"`
}

type lostReport struct {
	Reason   string `json:"reason"`
	Count    uint64 `json:"count"`
	Duration int64  `json:"duration,omitempty"` // ns, for gaps

	gap bool // nothing was recorded for a while, Count times
}

type stackReport struct {
	Complete     uint64 `json:"complete"`
	Truncated    uint64 `json:"truncated"`
	Failed       uint64 `json:"failed"`
	Unknown      uint64 `json:"unknown"`
	Absent       uint64 `json:"absent"`
	FramePointer uint64 `json:"frame_pointer"`
	Distinct     uint64 `json:"distinct"`
}

func compareFunctions(a, b functionReport) int {
	return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Function, b.Function),
		cmp.Compare(a.Op, b.Op), cmp.Compare(a.Resource, b.Resource))
}

func compareLost(a, b lostReport) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
}

func (r *report) addResource(res *resource, u usage.Usage) {
	r.Resources = append(r.Resources, resourceReport{
		ID: res.ID, Type: res.Type, Calls: res.calls, Allocated: amount(u.Allocated), Temporary: amount(u.Temporary),
		Live: amount(u.Live), Unknown: amount(u.Unknown), Peak: amount(u.Peak), Sampled: res.Sampled,
	})
}

// liveMemory returns the live memory, and the unknown.
func (r *report) liveMemory() (live rss.Live) {
	for _, res := range r.Resources {
		if res.Type == memoryType {
			live.Blocks += res.Live.Blocks
			live.Bytes += res.Live.Bytes
			live.UnknownBlocks += res.Unknown.Blocks
			live.UnknownBytes += res.Unknown.Bytes
		}
	}
	return live
}

// page collects lines "label: value".
type page struct{ strings.Builder }

func (p *page) line(label, format string, args ...any) {
	fmt.Fprintf(p, "%-11s %s\n", label+":", sites.Printable(fmt.Sprintf(format, args...)))
}

// count adds line i of a list that has its label before the first line.
func (p *page) count(i int, label string, n uint64, what string) {
	if i == 0 {
		label += ":"
	} else {
		label = ""
	}
	fmt.Fprintf(p, "%-11s %12d %s\n", label, n, sites.Printable(what))
}

func (r *report) writeText(w io.Writer) error {
	var p page
	r.writeFile(&p)
	r.writeProcess(&p)
	if r.Time.First != 0 {
		p.line("time", "%s to %s, %s s", r.clock(r.Time.First), r.clock(r.Time.Last), seconds(r.Time.Duration))
	}
	for i, k := range r.Records {
		p.count(i, "records", k.Count, k.Kind)
	}
	if r.Cost != nil {
		p.line("cost", "%s", estimate.SlowDown(r.Cost.cost))
	}
	if r.Budget != nil {
		r.Budget.write(&p, r.Cost)
	}
	for i, f := range r.Functions {
		text := f.Function + " " + f.Op
		if len(r.Resources) > 1 {
			text += " " + r.typeOf(f.Resource)
		}
		if f.Bytes > 0 {
			text += fmt.Sprintf(", %d bytes", f.Bytes)
		}
		p.count(i, "calls", f.Calls, text)
	}
	for i, res := range r.Resources {
		text := fmt.Sprintf("%s, %d bytes; at the peak %d, %d bytes", r.typeOf(res.ID), res.Live.Bytes, res.Peak.Blocks, res.Peak.Bytes)
		if res.Sampled {
			text = fmt.Sprintf("%s, samples that represent %d bytes; frees are not recorded", r.typeOf(res.ID), res.Live.Bytes)
		}
		p.count(i, "live", res.Live.Blocks, text)
	}
	r.writeAmounts(&p, "unknown", ": live when the recording had a gap, in which frees were not recorded", func(x *resourceReport) amount { return x.Unknown })
	r.writeAmounts(&p, "temporary", "", func(x *resourceReport) amount { return x.Temporary })
	if g := r.RSS; g != nil {
		p.line("rss", "%d bytes at the start, %d at the end", g.Start, g.End)
		if g.Elsewhere {
			p.line("growth", "%s", g.Verdict)
		}
	}
	if r.Heap != nil {
		r.Heap.write(&p, r.clock)
	}
	if r.Unmatched > 0 {
		p.line("unmatched", "%d frees of blocks whose allocation is not in the trace", r.Unmatched)
	}
	if r.Replaced > 0 {
		p.line("twice", "%d allocations at the address of a live block, whose free is not in the trace", r.Replaced)
	}
	r.writeLost(&p)
	r.writeStacks(&p)
	_, err := io.WriteString(w, p.String())
	return err
}

func (r *report) writeFile(p *page) {
	format := strings.TrimSpace(r.File.Format + " " + r.File.Version)
	format = strings.Join(append([]string{format}, r.File.Compression...), ", in ")
	if r.File.SideFile != "" {
		format += ", with side file " + r.File.SideFile
	}
	p.line("format", "%s", format)
	if !r.File.Complete {
		note := "no; the figures cover the part that could be read"
		if r.File.Skipped > 0 {
			note += ", without " + plural(r.File.Skipped, "record")
		}
		p.line("complete", "%s", note)
	}
	var arch []string
	if r.Arch != "" {
		arch = append(arch, r.Arch)
	}
	if r.PointerSize != 0 {
		order := "little-endian"
		if r.BigEndian {
			order = "big-endian"
		}
		arch = append(arch, order, fmt.Sprintf("%d-bit", 8*r.PointerSize))
	}
	if len(arch) > 0 {
		p.line("machine", "%s", strings.Join(arch, ", "))
	}
	if r.Origin != "" {
		p.line("written by", "%s", r.Origin)
	}
	if r.Filter != "" {
		p.line("filtered", "%s", r.Filter)
	}
}

func (r *report) writeProcess(p *page) {
	if r.Process == nil {
		return
	}
	text := strconv.Itoa(int(r.Process.PID))
	if r.Process.Name != "" {
		text += " " + r.Process.Name
	}
	if r.Process.WallTime != 0 {
		text += ", traced from " + figure.Date(r.Process.WallTime)
	}
	if r.Process.Depth >= 0 {
		text += fmt.Sprintf(", up to %d frames", r.Process.Depth)
	}
	p.line("process", "%s", text)
	if r.Threads > 0 {
		p.line("threads", "%d", r.Threads)
	}
	if r.Modules > 0 {
		p.line("modules", "%d", r.Modules)
	}
}

// writeAmounts writes an amount of each resource.
func (r *report) writeAmounts(p *page, label, note string, of func(*resourceReport) amount) {
	n := 0
	for i := range r.Resources {
		if a := of(&r.Resources[i]); a.Blocks > 0 {
			p.count(n, label, a.Blocks, fmt.Sprintf("%s, %d bytes%s", r.typeOf(r.Resources[i].ID), a.Bytes, note))
			n++
		}
	}
}

func (r *report) writeLost(p *page) {
	var reasons, gaps []string
	for _, l := range r.Lost {
		text := fmt.Sprintf("%d %s", l.Count, l.Reason)
		if l.Duration > 0 {
			text += fmt.Sprintf(" (%v)", time.Duration(l.Duration).Round(time.Millisecond))
		}
		if l.gap {
			gaps = append(gaps, text)
		} else {
			reasons = append(reasons, text)
		}
	}
	text := strconv.FormatUint(r.LostEvents, 10)
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons, ", ")
	}
	p.line("lost", "%s", text)
	if len(gaps) > 0 {
		p.line("gaps", "%s: nothing was recorded for that long", strings.Join(gaps, ", "))
	}
}

func (r *report) writeStacks(p *page) {
	s := &r.Stacks
	if s.Complete+s.Truncated+s.Failed+s.Unknown == 0 {
		p.line("stacks", "none")
		return
	}
	var parts []string
	for _, x := range []struct {
		n    uint64
		what string
	}{
		{s.Complete, "complete"},
		{s.Truncated, "truncated"},
		{s.Failed, "failed"},
		{s.Unknown, "of unknown quality"},
		{s.Absent, "calls without"},
		{s.FramePointer, "by frame pointer"},
	} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	p.line("stacks", "%d distinct; %s", s.Distinct, strings.Join(parts, ", "))
}

// clock returns a time of the trace's clock as text.
func (r *report) clock(t int64) string {
	if r.Time.Clock == "day" {
		return time.Unix(0, t).UTC().Format("15:04:05.000")
	}
	return seconds(t) + " s"
}

// seconds returns nanoseconds as seconds.
func seconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	s := fmt.Sprintf("%s%d.%09d", sign, ns/1e9, ns%1e9)
	return strings.TrimSuffix(strings.TrimSuffix(s, "000"), "000")
}

// typeOf returns the name of a resource's type.
func (r *report) typeOf(id uint32) string {
	for _, res := range r.Resources {
		if res.ID == id && res.Type != "" {
			return res.Type
		}
	}
	if id == 0 {
		return "unnamed"
	}
	return "resource " + strconv.FormatUint(uint64(id), 10)
}
