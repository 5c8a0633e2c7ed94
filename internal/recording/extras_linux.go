package recording

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/recording/memory"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/snapshot"
	"rtrace-bpf/internal/recording/swapevents"
	"rtrace-bpf/tracer/record"
)

// extras are what a trace has besides events of the tracer.
type extras struct {
	resident *memory.Resident // nil before the tracer is opened
	heap     *memory.Heap     // nil for nothing
	pages    *memory.Pages    // nil for nothing
	leaks    *outfile.File    // the report of blocks that were not freed; nil for none
	// snapshots are written while the process is recorded; nil for none.
	snapshots *snapshot.Files
}

// openResident begins to read the resident memory. It is called right before the probes
// are attached.
func (x *session) openResident() { x.extras.resident = memory.OpenResident(x.pid) }

// openHeap begins to read the heap, if that is recorded.
func (x *session) openHeap() {
	if o := &x.of.options; o.HeapInfo {
		x.extras.heap = memory.OpenHeap(x.pid, !o.Tracer.NoMemory, o.Line)
	}
}

// close releases the process.
func (e *extras) close() {
	if e.resident != nil {
		e.resident.Close()
	}
	if e.heap != nil {
		e.heap.Close()
	}
	if e.pages != nil {
		e.pages.Close()
	}
	if e.snapshots != nil {
		e.snapshots.Close()
	}
}

// openSnapshots prepares the snapshots, if there are to be any.
func (x *session) openSnapshots() (err error) {
	o := &x.of.options
	if o.Snapshots.Every == 0 {
		return nil
	}
	x.extras.snapshots, err = snapshot.Open(x.pid, x.out, x.sums.view, o.Snapshots, o.Line)
	return err
}

// path returns the path of what is written, for messages.
func (x *session) path() string {
	if x.of.options.Output.Unwritten {
		return x.extras.snapshots.Pattern()
	}
	return x.out.Path()
}

// endSnapshots writes the last snapshot. hurry is closed when names are not to be waited for.
func (x *session) endSnapshots(stats *record.Stats, hurry <-chan struct{}) {
	if s := x.extras.snapshots; s != nil {
		s.Measured(x.measure(stats), true)
		s.End(hurry)
	}
}

// leakSuffix is the end of a report's name, after that of its trace.
const leakSuffix = ".leaks"

// openLeaks creates the file of the report of blocks that were not freed.
func (x *session) openLeaks() (err error) {
	if !x.of.options.Leaks {
		return nil
	}
	if !x.out.Regular() {
		return &output.NoDirectoryError{Files: "report of leaks", Path: x.out.Path()}
	}
	x.extras.leaks, err = outfile.Create(context.Background(), x.out.Path()+leakSuffix, nil)
	return err
}

// dropLeaks removes the report.
func (x *session) dropLeaks() error {
	if x.extras.leaks == nil {
		return nil
	}
	return x.extras.leaks.Discard()
}

// writeLeaks writes the report, and a message with its name. The probes are off.
func (x *session) writeLeaks() error {
	to := x.extras.leaks
	if to == nil {
		return nil
	}
	x.of.naming.Lock()
	defer x.of.naming.Unlock()
	stats := x.probes.tracer.Stats()
	report := swapevents.Leaks{
		PID: x.pid, Name: x.name(), Stats: stats,
		Sites: x.probes.tracer.LiveSites(stats.LiveBlocks), Frame: x.frames.Text,
	}
	if stats.Losses() > 0 {
		report.Losses = Losses(&stats)
	}
	if err := errors.Join(report.Write(to), to.Close()); err != nil {
		return fmt.Errorf("report of leaks: %w", err)
	}
	r := swap.LeakReport(x.endTime, int32(x.pid), filepath.Base(to.Path()))
	return x.chain.first.WriteRecord(&r)
}
