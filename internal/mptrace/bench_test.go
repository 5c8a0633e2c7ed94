package mptrace_test

import (
	"bufio"
	"io"
	"testing"

	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// churn returns n events of a program. 1 in 50 blocks is never freed; the
// others are freed within the next 1000 events.
func churn(n int) []wire.Event {
	x := uint64(1)
	random := func(n uint64) uint64 {
		x = x*6364136223846793005 + 1442695040888963407
		return x >> 33 % n
	}
	from := wire.Source{
		Thread: 4711, Function: wire.Name{Text: "work_on_it", Known: true}, File: wire.Name{Text: "src/work.c", Known: true}, Line: 123,
	}
	var window [1000]uint64
	events := make([]wire.Event, 0, n+1)
	for index := uint64(100); len(events) < n; index++ {
		events = append(events, wire.Event{Kind: wire.Alloc, Index: index, Address: 0x7f0012340010 + random(1<<20)*16, Size: random(1000), Source: from})
		at := random(uint64(len(window)))
		if window[at] != 0 {
			events = append(events, wire.Event{Kind: wire.Free, Index: window[at], Source: from})
			window[at] = 0
		}
		if index%50 != 0 {
			window[at] = index
		}
	}
	return events
}

func BenchmarkPrinter(b *testing.B) {
	events := churn(1_000_000)
	for _, tt := range []struct {
		name string
		with func(*mptrace.Printer)
	}{
		{"statistics", func(*mptrace.Printer) {}},
		{"table", func(p *mptrace.Printer) { p.Table = &mptrace.Table{AddressDigits: 16} }},
		{"table and sources", func(p *mptrace.Printer) { p.Table = &mptrace.Table{AddressDigits: 16, Sources: true} }},
		{"hatf", func(p *mptrace.Printer) { p.HATF, p.HATFTo = new(mptrace.HATF), p.Text }},
		{"simulation", func(p *mptrace.Printer) { p.Simulation, p.SimulationTo = mptrace.NewSimulation(), p.Text }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := &mptrace.Printer{Accounts: mptrace.NewBook(), Text: bufio.NewWriterSize(io.Discard, 64<<10)}
				tt.with(p)
				if err := p.Begin(); err != nil {
					b.Fatal(err)
				}
				for i := range events {
					if _, err := p.Event(&events[i], 0); err != nil {
						b.Fatal(err)
					}
				}
				if err := p.End(true); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(events))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
