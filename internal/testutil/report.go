package testutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Report is the report of a program of testdata/progs about its own calls: the ground truth for
// a trace of it. The format is in testdata/progs/prog.h.
type Report struct {
	PID       int
	TIDs      []int
	Functions map[string]Count
	Ops       map[string]uint64 // by Call.Op
	Leaks     map[string]uint64 // bytes left, by function (leak)
	Pairs     uint64            // (loop)
	CPUNs     uint64            `json:"cpu_ns"`
	WallNs    uint64            `json:"wall_ns"`
	NsPerPair float64           `json:"ns_per_pair"`
	Maps      []Range           // what was mapped (mmapexec)
	Files     []OpenFile        // what it has open (openfiles)
	Caught    uint64            // exceptions (cxx, operators)
	Thrown    uint64            // exceptions that the C++ runtime had a block for (operators)
	Wrong     uint64            // blocks with a wrong content (churn)
	Noticed   uint64            // calls that were not as without a tracer (interrupted)

	// Calls holds the logged calls, thread by thread, each thread's in order.
	Calls []Call `json:"-"`
}

// Count sums up the calls of one function.
type Count struct {
	Calls uint64
	Bytes uint64 // requested by the calls that returned a block
}

// Call is one logged call.
type Call struct {
	TID      int
	Op       string // alloc, free, move, or none: it failed or did nothing
	Function string // as in C, or "operator new", "operator delete"
	Caller   string // function that made the call, if the program reports it
	Line     uint64 // of Caller
	Old      uint64 // block that was freed or moved
	Ptr      uint64 // block that was returned
	Size     uint64 // requested; 0 for a free
}

// OpenFile is a regular file that the program has open.
type OpenFile struct {
	FD   int
	Size uint64
	Path string
}

// Range is a mapping of Size bytes at Start.
type Range struct{ Start, Size uint64 }

// ParseReport reads the output of a program that made one report.
func ParseReport(output []byte) (*Report, error) {
	all, err := ParseReports(output)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%d reports in %d bytes of output, want 1", len(all), len(output))
	}
	return all[0], nil
}

// ParseReports reads the output of a program that executed another one (exec).
func ParseReports(output []byte) ([]*Report, error) {
	var all []*Report
	r := new(Report)
	open := false
	for line := range bytes.Lines(output) {
		text := strings.TrimSuffix(string(line), "\n")
		if rest, ok := strings.CutPrefix(text, "call "); ok {
			c, err := parseCall(rest)
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", text, err)
			}
			r.Calls = append(r.Calls, c)
			open = true
			continue
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(r); err != nil {
			return nil, fmt.Errorf("line %q: %w", text, err)
		}
		all = append(all, r)
		r = new(Report)
		open = false
	}
	if open {
		return nil, fmt.Errorf("%d calls without counts after them", len(r.Calls))
	}
	return all, nil
}

// parseCall parses what follows "call": TID OP OLD PTR SIZE FUNCTION, and perhaps @CALLER:LINE.
func parseCall(text string) (Call, error) {
	f := strings.SplitN(text, " ", 6)
	if len(f) != 6 {
		return Call{}, fmt.Errorf("%d fields, want 6", len(f))
	}
	c := Call{Op: f[1]}
	function, place, known := strings.Cut(f[5], "@")
	c.Function = function
	var err error
	if known {
		caller, line, _ := strings.Cut(place, ":")
		c.Caller = caller
		if c.Line, err = strconv.ParseUint(line, 10, 32); err != nil {
			return Call{}, err
		}
	}
	if c.TID, err = strconv.Atoi(f[0]); err != nil {
		return Call{}, err
	}
	for i, to := range []*uint64{&c.Old, &c.Ptr} {
		if *to, err = strconv.ParseUint(f[2+i], 16, 64); err != nil {
			return Call{}, err
		}
	}
	if c.Size, err = strconv.ParseUint(f[4], 10, 64); err != nil {
		return Call{}, err
	}
	return c, nil
}

// Done returns the calls that had an effect, which are those that a trace records.
func (r *Report) Done() []Call {
	var out []Call
	for _, c := range r.Calls {
		if c.Op != "none" {
			out = append(out, c)
		}
	}
	return out
}

// Live returns the blocks that are left according to the log, by address. The calls of one
// thread are applied in their order. With several threads the result is right only if no block
// of one is freed or reused by another.
func (r *Report) Live() map[uint64]Call {
	live := make(map[uint64]Call)
	for _, c := range r.Done() {
		if c.Op != "alloc" {
			delete(live, c.Old)
		}
		if c.Op != "free" {
			live[c.Ptr] = c
		}
	}
	return live
}
