package main

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// heapReport is the state of the heap, with the fields of mallinfo(3) of the C library.
type heapReport struct {
	Time     int64    `json:"time,omitempty"` // when it was read
	Bottom   string   `json:"bottom"`
	Top      string   `json:"top"`
	Arena    uint64   `json:"arena"`
	OrdBlks  uint64   `json:"ordblks"`
	SmBlks   uint64   `json:"smblks"`
	HBlks    uint64   `json:"hblks"`
	HBlkHd   uint64   `json:"hblkhd"`
	UsmBlks  uint64   `json:"usmblks"`
	FsmBlks  uint64   `json:"fsmblks"`
	UordBlks uint64   `json:"uordblks"`
	FordBlks uint64   `json:"fordblks"`
	KeepCost uint64   `json:"keepcost"`
	Unknown  []string `json:"unknown"` // fields that are 0 because they are not known
	Why      string   `json:"why,omitempty"`
	// Unsure means that the trace does not show which fields are known.
	Unsure bool `json:"unsure,omitempty"`
}

// newHeapReport returns the report for a record and the note about it; nil without a record.
func newHeapReport(time int64, h *trace.HeapInfo, about *sidefile.HeapInfo) *heapReport {
	r := &heapReport{
		Time: time, Bottom: fmt.Sprintf("0x%x", h.Bottom), Top: fmt.Sprintf("0x%x", h.Top),
		Arena: h.Arena, OrdBlks: h.OrdBlks, SmBlks: h.SmBlks, HBlks: h.HBlks, HBlkHd: h.HBlkHd,
		UsmBlks: h.UsmBlks, FsmBlks: h.FsmBlks, UordBlks: h.UordBlks, FordBlks: h.FordBlks, KeepCost: h.KeepCost,
		Unknown: []string{}, Unsure: about == nil,
	}
	if about != nil {
		r.Unknown, r.Why = append(r.Unknown, about.Unknown...), about.Why
	}
	return r
}

// write prints the fields, each with its unit and meaning.
func (r *heapReport) write(p *page, clock func(int64) string) {
	when := ""
	if r.Time != 0 {
		when = ", at " + clock(r.Time)
	}
	p.line("heap", "from %s to %s%s", r.Bottom, r.Top, when)
	for _, f := range []struct {
		name  string
		value uint64
		what  string
	}{
		{"arena", r.Arena, "bytes that malloc got from the system, without mapped blocks"},
		{"uordblks", r.UordBlks, "bytes of arena in blocks"},
		{"fordblks", r.FordBlks, "bytes of arena that are free"},
		{"keepcost", r.KeepCost, "free bytes at the top, which could be returned"},
		{"ordblks", r.OrdBlks, "free chunks"},
		{"smblks", r.SmBlks, "free chunks in fast bins"},
		{"fsmblks", r.FsmBlks, "bytes in fast bins"},
		{"hblks", r.HBlks, "blocks with a mapping of their own"},
		{"hblkhd", r.HBlkHd, "bytes in these mappings"},
		{"usmblks", r.UsmBlks, "bytes, always 0 in glibc"},
	} {
		value := fmt.Sprint(f.value)
		if slices.Contains(r.Unknown, f.name) {
			value = "unknown"
		}
		fmt.Fprintf(p, "%-11s %12s %s: %s\n", "", value, f.name, f.what)
	}
	switch {
	case len(r.Unknown) > 0:
		p.line("unknown", "%s: %s", strings.Join(r.Unknown, ", "), r.Why)
	case r.Unsure:
		p.line("unsure", "a value of 0 may mean unknown: the trace does not show which")
	}
}
