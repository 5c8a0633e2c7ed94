package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Run holds the results of one run, from the first call of the trace to the
// last. Sizes are in bytes.
type Run struct {
	Wall    uint64 `json:"wall_ns"`
	CPU     uint64 `json:"cpu_ns"` // user and system time of all threads
	Faults  uint64 `json:"minor_faults"`
	Failed  uint64 `json:"failed_calls"` // that returned no memory
	Live    uint64 `json:"peak_live"`    // largest live amount, as far as it was sampled
	Before  uint64 `json:"rss_before"`   // of the process before the first call: the replay's own memory
	Peak    uint64 `json:"peak_rss"`     // peak of the process
	After   uint64 `json:"rss_after"`    // of the process after the last call
	Library string `json:"library"`      // file whose malloc was used

	peakBefore uint64 // differs from Before where the kernel cannot reset it
}

// Growth returns the memory that the calls took at the peak: the peak of the
// process minus its memory before the first call. If the process had a higher
// peak before, the kernel may not know that of the calls; Growth then uses the
// memory at the end.
func (r *Run) Growth() uint64 {
	peak := r.Peak
	if peak <= r.peakBefore {
		peak = r.After
	}
	return peak - min(peak, r.Before)
}

// parseRun parses the output of the C program.
func parseRun(text []byte) (Run, error) {
	var r Run
	fields := map[string]*uint64{
		"wall_ns": &r.Wall, "cpu_ns": &r.CPU, "faults": &r.Faults, "failed": &r.Failed, "live": &r.Live,
		"rss_before": &r.Before, "peak_before": &r.peakBefore, "rss_after": &r.After, "peak": &r.Peak,
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == "malloc" {
			r.Library = value
			continue
		}
		to, ok := fields[name]
		if !ok {
			return Run{}, fmt.Errorf("unexpected result %q", line)
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return Run{}, fmt.Errorf("unexpected result %q", line)
		}
		*to = n
		delete(fields, name)
	}
	if r.Library == "" || len(fields) > 0 {
		return Run{}, fmt.Errorf("incomplete results %q", text)
	}
	return r, nil
}

// Median returns the median of a figure over all runs, and the spread of the
// middle half of the runs, so that a disturbed run affects neither. The spread
// of one run is 0.
func (r *Row) Median(of func(*Run) uint64) (median, spread uint64) {
	var all []uint64
	for i := range r.Runs {
		all = append(all, of(&r.Runs[i]))
	}
	n := len(all)
	if n == 0 {
		return 0, 0
	}
	slices.Sort(all)
	median = (all[(n-1)/2] + all[n/2]) / 2
	quarter := (n - 1) / 4
	return median, all[n-1-quarter] - all[quarter]
}
