package recording

import (
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/record"
)

// Summary holds the figures of a trace that is complete.
type Summary struct {
	Process
	Regular   bool  // the trace is a regular file
	Size      int64 // of the trace, in bytes
	Alone     bool  // no other process is recorded
	Stats     record.Stats
	Growth    *rss.Growth       // of resident memory; nil if it is not known
	Residence *record.Residence // what is known of resident memory; nil if page faults are not recorded
	Cost      *trace.Cost       // what recording cost the process; nil if that is not known
	Estimates *estimate.Totals  // of a recording in windows; nil for another
	Runtime   string            // counts of the .NET runtime's events; empty for none
	Remarks   []string          // of the encoder
	CutStacks uint64            // stacks that the format has cut
	Suspects  int               // call sites that grow
	// Verdicts returns lines of at most columns about the call sites that grow: a line for
	// each of the first suspects, or that there are none. It is nil if they are not known.
	Verdicts func(columns int) []string
	// Sites returns the call sites with the most live bytes, n at most.
	Sites func(n int) []record.LiveSite
	// Frame returns the name of a frame.
	Frame func(addr uint64) string
}

// summary returns the summary of a session, after finish.
func (x *session) summary() *Summary {
	s := &Summary{
		Process: Process{PID: x.pid, Name: x.name(), Path: x.path(), Child: x.child},
		Regular: x.out.Regular(), Size: x.out.Size(), Alone: x.probes.alone, Stats: x.stats,
		Remarks: encoder.Remarks(x.out.Encoder()), CutStacks: encoder.CutStacks(x.out.Encoder()),
		Cost: x.costs.total, Estimates: x.estimates, Sites: x.liveSites, Frame: x.frames.Text,
	}
	s.Growth = x.extras.resident.Growth(rss.Live{
		Blocks: uint64(x.stats.LiveBlocks), Bytes: x.stats.LiveBytes,
		UnknownBlocks: uint64(x.stats.UnknownBlocks), UnknownBytes: x.stats.UnknownBytes,
	})
	if known, ok := x.probes.tracer.Residence(); ok {
		s.Residence = &known
	}
	if x.chain.events != nil {
		s.Runtime = x.chain.events.Summary()
	}
	return s
}

// liveSites returns the call sites with the most live bytes, without frames of wrappers where
// stacks begin.
func (x *session) liveSites(n int) []record.LiveSite {
	all := x.probes.tracer.LiveSites(n)
	for i := range all {
		all[i].Frames = x.frames.Unwrapped(all[i].Frames)
	}
	return all
}
