package sprtrace_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	decoder "rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/trace"
)

// projection is what a trace keeps in the format: the records that decoding returns
// after encoding recs. All strings of recs must fit.
type projection struct {
	document  bool
	wide      bool // pointers of 8 bytes
	pid       int32
	calls     uint64
	last      int64 // latest timestamp
	process   bool
	resources map[uint32]bool
	out       []*trace.Record
}

func (p *projection) add(r *trace.Record) { p.out = append(p.out, r) }

// begin starts a trace.
func (p *projection) begin(h trace.Header) {
	p.wide = h.PointerSize != 4
	head := trace.Header{Format: "sp-rtrace", Version: "2.0", Arch: h.Arch, BigEndian: h.BigEndian, PointerSize: 8, Clock: trace.ClockDay}
	if p.document {
		head.Version = "1.4"
	}
	if !p.wide {
		head.PointerSize = 4
	}
	if head.Arch == "" {
		head.Arch = map[bool]string{true: "x86_64", false: "i686"}[p.wide]
	}
	p.pid, p.calls, p.last, p.process, p.resources = 0, 0, 0, false, map[uint32]bool{}
	p.add(&trace.Record{Kind: trace.KindHeader, Header: head})
}

func (p *projection) addProcess(pid int32, proc trace.Process) {
	proc.WallTime = max(proc.WallTime, 0) / 1e3 * 1e3
	proc.Depth = min(max(proc.Depth, -1), 1<<31-1)
	p.pid, p.process = pid, true
	p.add(&trace.Record{Kind: trace.KindProcess, PID: pid, Process: proc})
}

func (p *projection) pointer(v uint64) uint64 {
	if p.wide {
		return v
	}
	return uint64(uint32(v))
}

func (p *projection) time(ns int64) int64 {
	if ns <= 0 {
		return 0
	}
	const day = 86_400_000
	ms := max(ns/1e6%day, 1)
	if ms < p.last && p.last-ms < day/2 {
		ms = p.last
	}
	p.last = ms
	return ms * 1e6
}

func (p *projection) call(r *trace.Record, op trace.Op, ns int64, id, size uint64, args []trace.Arg, frames []uint64) {
	p.calls++
	if op == trace.OpFree {
		size = 0
	}
	c := trace.Call{
		Seq: p.calls, Op: op, Function: r.Call.Function, Resource: r.Call.Resource, ID: p.pointer(id),
		Size: min(size, 1<<31-1), Context: r.Call.Context, Stack: trace.Stack{End: trace.StackUnknown},
	}
	for _, f := range frames[:min(len(frames), 253)] {
		c.Stack.Frames = append(c.Stack.Frames, p.pointer(f))
	}
	c.Args = append(c.Args, args...)
	if c.Resource > 32 {
		c.Resource = 0
	}
	if p.document && c.Resource == 0 && len(p.resources) == 1 {
		for id := range p.resources { // 0 means the only one
			c.Resource = id
		}
	}
	p.add(&trace.Record{Kind: trace.KindCall, PID: p.pid, Time: p.time(ns), Call: c})
}

func (p *projection) record(r *trace.Record) {
	if len(p.out) == 0 && r.Kind != trace.KindHeader {
		p.begin(trace.Header{})
	}
	switch r.Kind {
	case trace.KindHeader:
		p.begin(r.Header)
	case trace.KindProcess:
		p.addProcess(r.PID, r.Process)
	case trace.KindResource:
		if r.Resource.ID >= 1 && r.Resource.ID <= 32 {
			p.resources[r.Resource.ID] = true
			p.add(&trace.Record{Kind: r.Kind, PID: p.pid, Resource: r.Resource})
		}
	case trace.KindMapping:
		m := trace.Mapping{Start: r.Mapping.Start, End: r.Mapping.End, Path: r.Mapping.Path}
		if r.Mapping.Base != 0 && !p.document {
			m.Start = r.Mapping.Base
		}
		if p.pointer(m.Start) == m.Start && p.pointer(m.End) == m.End { // it fits
			p.add(&trace.Record{Kind: r.Kind, PID: p.pid, Mapping: m})
		}
	case trace.KindContext, trace.KindTracerModule, trace.KindAttachment:
		p.add(&trace.Record{Kind: r.Kind, PID: p.pid, Context: r.Context, TracerModule: r.TracerModule, Attachment: r.Attachment})
	case trace.KindHeapInfo:
		h := r.HeapInfo
		h.Bottom, h.Top = p.pointer(h.Bottom), p.pointer(h.Top)
		for _, v := range []*uint64{&h.Arena, &h.OrdBlks, &h.SmBlks, &h.HBlks, &h.HBlkHd, &h.UsmBlks, &h.FsmBlks, &h.UordBlks, &h.FordBlks, &h.KeepCost} {
			*v = min(*v, 1<<31-1)
		}
		p.add(&trace.Record{Kind: r.Kind, PID: p.pid, HeapInfo: h})
	case trace.KindCall:
		if !p.process {
			p.addProcess(r.PID, trace.Process{Depth: -1})
		}
		if id := r.Call.Resource; id >= 1 && id <= 32 && !p.resources[id] {
			p.resources[id] = true
			p.add(&trace.Record{Kind: trace.KindResource, PID: p.pid, Resource: trace.Resource{ID: id, Type: "unknown"}})
		}
		c := &r.Call
		if c.Op == trace.OpMove {
			t := c.EntryTime
			if t == 0 {
				t = r.Time
			}
			p.call(r, trace.OpFree, t, c.OldID, 0, nil, nil)
			p.call(r, trace.OpAlloc, r.Time, c.ID, c.Size, c.Args, c.Stack.Frames)
			return
		}
		p.call(r, c.Op, r.Time, c.ID, c.Size, c.Args, c.Stack.Frames)
	}
}

// generator makes records of bytes, with values that a trace may have: declared
// contexts, addresses of 48 bits. The decoder distinguishes dialects by such values.
type generator struct {
	data     []byte
	contexts uint32
}

func (g *generator) byte() byte {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return b
}

// number returns a number of up to 64 bits, often a small one.
func (g *generator) number() uint64 {
	n := int(g.byte() % 9)
	var b [8]byte
	for i := range n {
		b[i] = g.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

// text returns a short string without a NUL.
func (g *generator) text() string {
	var b strings.Builder
	for range g.byte() % 12 {
		b.WriteByte(max(g.byte(), 1))
	}
	return b.String()
}

func (g *generator) record() *trace.Record {
	kinds := []trace.Kind{
		trace.KindCall, trace.KindCall, trace.KindCall, trace.KindCall, trace.KindProcess, trace.KindResource, trace.KindContext,
		trace.KindMapping, trace.KindTracerModule, trace.KindAttachment, trace.KindHeapInfo, trace.KindThread, trace.KindLost, trace.KindHeader,
	}
	r := &trace.Record{Kind: kinds[int(g.byte())%len(kinds)], PID: int32(g.number())}
	switch r.Kind {
	case trace.KindHeader:
		b := g.byte()
		g.contexts = 0
		r.Header = trace.Header{Arch: g.text(), BigEndian: b&1 != 0, PointerSize: int(b & 12)}
	case trace.KindProcess:
		r.Process = trace.Process{Name: g.text(), WallTime: int64(uint32(g.number()))*1e9 + int64(g.number()%1e9), Depth: int(g.number())}
	case trace.KindResource:
		r.Resource = trace.Resource{ID: uint32(g.byte() % 40), Type: g.text(), Desc: g.text(), RefCount: g.byte()&1 != 0}
	case trace.KindContext:
		r.Context = trace.Context{ID: uint32(g.number()), Name: g.text()}
		g.contexts |= r.Context.ID
	case trace.KindMapping:
		r.Mapping = trace.Mapping{Start: g.number(), End: g.number(), Base: g.number(), Path: g.text()}
	case trace.KindTracerModule:
		r.TracerModule = trace.TracerModule{ID: uint32(g.number()), Major: uint16(g.number()), Minor: uint16(g.number()), Name: g.text()}
	case trace.KindAttachment:
		r.Attachment = trace.Attachment{Name: g.text(), Path: g.text()}
	case trace.KindHeapInfo:
		r.HeapInfo = trace.HeapInfo{Bottom: g.number(), Top: g.number(), Arena: g.number(), KeepCost: g.number()}
	case trace.KindCall:
		r.Time = int64(g.number() >> 1)
		r.Call = trace.Call{
			Op: trace.Op(g.byte() % 4), Function: g.text(), Resource: 1 + uint32(g.byte()%32), ID: g.number() >> 16, OldID: g.number() >> 16,
			Size: g.number(), Context: uint32(g.number()) & g.contexts, EntryTime: int64(g.number() >> 1),
		}
		for range g.byte() {
			r.Call.Stack.Frames = append(r.Call.Stack.Frames, g.number())
		}
		for range g.byte() % 8 {
			r.Call.Args = append(r.Call.Args, trace.Arg{Name: g.text(), Value: g.text()})
		}
	}
	return r
}

// used returns a copy of r with only the payload of its kind, and without empty slices.
func used(r *trace.Record) *trace.Record {
	u := &trace.Record{Kind: r.Kind, Time: r.Time, PID: r.PID}
	switch r.Kind {
	case trace.KindHeader:
		u.Header = r.Header
	case trace.KindProcess:
		u.Process = r.Process
	case trace.KindResource:
		u.Resource = r.Resource
	case trace.KindContext:
		u.Context = r.Context
	case trace.KindMapping:
		u.Mapping = r.Mapping
	case trace.KindTracerModule:
		u.TracerModule = r.TracerModule
	case trace.KindAttachment:
		u.Attachment = r.Attachment
	case trace.KindHeapInfo:
		u.HeapInfo = r.HeapInfo
	case trace.KindCall:
		u.Call = r.Call
		u.Call.Stack.Frames = append([]uint64(nil), r.Call.Stack.Frames...)
		u.Call.Args = append([]trace.Arg(nil), r.Call.Args...)
	}
	return u
}

// tolerantly decodes data, which must have nothing odd in it.
func tolerantly(t *testing.T, data []byte) []*trace.Record {
	t.Helper()
	d, err := decoder.New(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recs, err := trace.Load(d)
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.Unknown+s.Malformed+s.Orphans != 0 {
		t.Errorf("odd packets: %+v", s)
	}
	return recs
}

func checkRoundTrip(t *testing.T, document bool, recs []*trace.Record) {
	t.Helper()
	opts := sprtrace.Options{}
	p := projection{document: document}
	if document {
		opts.Dialect = sprtrace.Document
	}
	for _, r := range recs {
		// A dropped record begins no trace.
		if r.Kind != trace.KindThread && r.Kind != trace.KindLost {
			p.record(r)
		}
	}
	if len(p.out) == 0 {
		p.begin(trace.Header{})
	}
	if !p.process {
		p.addProcess(0, trace.Process{Depth: -1})
	}
	data, stats := encode(t, opts, recs...)
	if stats.CutStrings+stats.CutArgs != 0 {
		t.Fatalf("strings were cut: %+v", stats)
	}
	if n := largest(t, data); n > 4096 {
		t.Errorf("packet of %d bytes", n)
	}
	got := tolerantly(t, data)
	if len(got) != len(p.out) {
		t.Fatalf("%d records, want %d", len(got), len(p.out))
	}
	for i := range got {
		if diff := cmp.Diff(used(p.out[i]), used(got[i])); diff != "" {
			t.Fatalf("record %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestRoundTripRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		g := generator{data: make([]byte, rnd.IntN(2000))}
		for j := range g.data {
			g.data[j] = byte(rnd.Uint32())
			if rnd.IntN(2) == 0 {
				g.data[j] &= 7
			}
		}
		var recs []*trace.Record
		for len(g.data) > 0 {
			recs = append(recs, g.record())
		}
		checkRoundTrip(t, i%2 == 1, recs)
	}
}

// FuzzRoundTrip: decoding returns the projection of the encoded records.
func FuzzRoundTrip(f *testing.F) {
	f.Add(false, []byte("\x04\x02\x07\x00\x05name!\x04\x01\x02\x03\x04\x00\x01\x0a"))
	f.Add(true, []byte("\x05\x00\x01\x06memory\x01d\x00\x00\x01\x07\x04\x00\x00\x50\x00\x01\x04open\x01\x02\x00\x00"))
	f.Add(false, []byte("\x0d\x00\x05\x03ppc\x00\x01\x07\x05\x00\x00\x00\x50\x01\x01\x06malloc\x01\x04\x00\x00\x00\x10\x01\x02"))
	f.Fuzz(func(t *testing.T, document bool, data []byte) {
		g := generator{data: data}
		var recs []*trace.Record
		for len(g.data) > 0 {
			recs = append(recs, g.record())
		}
		checkRoundTrip(t, document, recs)
	})
}
