package testutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Report is what a program of testdata/progs says about its own calls: the
// ground truth for a trace of it. testdata/progs/prog.h has the format.
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
	Caught    uint64            // exceptions (cxx)

	// Calls are the logged ones, thread by thread, each thread's in order.
	Calls []Call `json:"-"`
}

// Count sums up the calls of one function.
type Count struct {
	Calls uint64
	Bytes uint64 // asked for by the calls that gave a block
}

// Call is one logged call.
type Call struct {
	TID      int
	Op       string // alloc, free, move, or none: it failed or did nothing
	Function string // "operator new" and "operator delete" with a space
	Old      uint64 // block that was freed or moved
	Ptr      uint64 // block that was made
	Size     uint64 // asked for; 0 for a free
}

// Range is a mapping of Size bytes at Start.
type Range struct{ Start, Size uint64 }

// ParseReport reads the output of a program.
func ParseReport(output []byte) (*Report, error) {
	r := new(Report)
	done := false
	for line := range bytes.Lines(output) {
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case done:
			return nil, fmt.Errorf("line after the counts: %q", text)
		case strings.HasPrefix(text, "call "):
			c, err := parseCall(strings.Fields(text)[1:])
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", text, err)
			}
			r.Calls = append(r.Calls, c)
		default:
			d := json.NewDecoder(strings.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(r); err != nil {
				return nil, fmt.Errorf("line %q: %w", text, err)
			}
			done = true
		}
	}
	if !done {
		return nil, fmt.Errorf("no counts in %d bytes of output", len(output))
	}
	return r, nil
}

func parseCall(f []string) (Call, error) {
	if len(f) != 6 {
		return Call{}, fmt.Errorf("%d fields, want 6", len(f))
	}
	c := Call{Op: f[1], Function: strings.ReplaceAll(f[2], "operator_", "operator ")}
	var err error
	if c.TID, err = strconv.Atoi(f[0]); err != nil {
		return Call{}, err
	}
	for i, to := range []*uint64{&c.Old, &c.Ptr} {
		if *to, err = strconv.ParseUint(f[3+i], 16, 64); err != nil {
			return Call{}, err
		}
	}
	if c.Size, err = strconv.ParseUint(f[5], 10, 64); err != nil {
		return Call{}, err
	}
	return c, nil
}

// Done returns the calls that had an effect: those that a trace records.
func (r *Report) Done() []Call {
	var out []Call
	for _, c := range r.Calls {
		if c.Op != "none" {
			out = append(out, c)
		}
	}
	return out
}

// Live returns the blocks that are left according to the log, by address.
// The calls of one thread are taken in their order, those of several only if
// no block of one is freed or used again by another.
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
