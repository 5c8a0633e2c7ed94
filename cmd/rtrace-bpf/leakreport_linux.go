package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
)

// leakSuffix is what the name of a report has behind that of its trace.
const leakSuffix = ".leaks"

// maxLeakSites is of how many places a report has the stacks.
const maxLeakSites = 1000

// openLeaks makes the file of the report that --swap-lsan asks for.
func (x *session) openLeaks() (err error) {
	if !x.config.machine.leaks {
		return nil
	}
	if !x.out.Regular() {
		return fmt.Errorf("the report of --swap-lsan is a file beside the trace, and %s is none: name a directory or a file with -o", x.out.Path())
	}
	x.leaks, err = outfile.Create(context.Background(), x.out.Path()+leakSuffix, nil)
	return err
}

// dropLeaks gives the report up.
func (x *session) dropLeaks() error {
	if x.leaks == nil {
		return nil
	}
	return x.leaks.Discard()
}

// reportLeaks writes the report, and a message that tells its name. The probes are off.
func (x *session) reportLeaks() error {
	if x.leaks == nil {
		return nil
	}
	x.naming.Lock()
	defer x.naming.Unlock()
	w := bufio.NewWriter(x.leaks)
	x.printLeaks(w)
	if err := errors.Join(w.Flush(), x.leaks.Close()); err != nil {
		return fmt.Errorf("report of --swap-lsan: %w", err)
	}
	r := swap.LeakReport(x.endTime, int32(x.pid), filepath.Base(x.leaks.Path()))
	return x.sink.WriteRecord(&r)
}

// printLeaks writes the text of the report. Errors are told when w is flushed.
func (x *session) printLeaks(w *bufio.Writer) {
	stats := x.tracer.Stats()
	fmt.Fprintf(w, "Not freed when the recording of process %d (%s) ended: %d blocks, %d bytes.\n",
		x.pid, printable.Name(x.tracer.Plan().ProcessName()), stats.LiveBlocks, stats.LiveBytes)
	fmt.Fprint(w, "They were allocated while it was recorded. That says nothing of whether the program still uses them.\n")
	if n := stats.Losses(); n > 0 {
		fmt.Fprintf(w, "Events were lost (%s): some of these blocks may have been freed, and others are missing.\n", lossList(&stats))
	}
	if stats.UnknownBlocks > 0 {
		fmt.Fprintf(w, "Not among them are %d blocks, %d bytes, that were live when nothing was recorded for a while: they may have been freed then.\n", stats.UnknownBlocks, stats.UnknownBytes)
	}
	sites := x.tracer.LiveSites(stats.LiveBlocks)
	for i, site := range sites {
		if i == maxLeakSites {
			fmt.Fprintf(w, "\n%d more places with fewer bytes each are left out.\n", len(sites)-i)
			return
		}
		fmt.Fprintf(w, "\n%d bytes in %d blocks from\n", site.Bytes, site.Blocks)
		if len(site.Frames) == 0 {
			fmt.Fprint(w, "    no stack was recorded\n")
		}
		for _, addr := range site.Frames {
			fmt.Fprintf(w, "    %#x %s\n", addr, printable.Name(x.names.frame(addr)))
		}
	}
}
