package topview

import (
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
)

// Snapshot is what a view shows of one moment.
type Snapshot struct {
	*aggregate.State
	Elapsed   time.Duration // since tracing began
	Processes []Process
	Suspects  []aggregate.Suspect // call sites whose blocks pile up, the first one first
	Judged    bool                // verdicts on call sites are possible
	Traces    []string            // paths of the traces that are being written
}

// Process is a process that is or was traced.
type Process struct {
	PID     int
	Name    string
	RSS     uint64  // resident bytes; 0 if they are not known
	Lost    uint64  // events that were lost
	Losses  string  // their kinds; empty for none
	Pauses  uint64  // of the recording
	Share   float64 // of its processor time that goes into tracing
	Factor  float64 // how many times as much processor time it takes because of that; 0 if it is not known
	AtLeast bool    // Factor is a lower bound
	Whole   float64 // Factor since tracing began; 0 if it is not known
	Execs   int     // how often it executed another program
	Ended   bool
}

// Place is where calls were made.
type Place struct {
	Function string   // without a name, the file and the offset in it
	File     string   // of the source; empty if it is unknown
	Line     int      // 0 if it is unknown
	Library  string   // path of the program or library; empty if it is unknown
	Callers  []string // functions that led to it, the innermost first
	Stack    []string // all frames, the innermost first
	Frames   []Frame  // the same without the functions that others are inlined into
	At       int      // the number of the frame of Function
}

// Frame is a return address.
type Frame struct {
	Function string // the innermost one that is active
	Line     string // its file and line, such as "main.c:12"; empty if they are unknown
	Offset   string // distinguishes it from other addresses: "main+0x9f", or the file and the offset in it
}

// Source answers what a snapshot leaves out.
type Source interface {
	// Place returns the place of a call site. ok is false if it is not known yet.
	Place(site int) (p Place, ok bool)
	// Detail returns further figures of a call site.
	Detail(site int) aggregate.Detail
}
