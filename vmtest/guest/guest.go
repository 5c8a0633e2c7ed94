// Package guest defines the interface between the host and the init of a virtual machine: the
// plan of what to run, and the lines in which the guest reports progress.
//
// The guest's only output is its console, to which the kernel may write as well. So init writes
// its reports in lines that begin with a token, which the host generated for this machine. All
// other lines between the start and the end of a job are the job's output.
package guest

import (
	"encoding/json"
	"fmt"
	"io"
)

// PlanPath is where init finds the plan.
const PlanPath = "/vmtest/plan.json"

// Plan is what a machine runs.
type Plan struct {
	Token string
	Jobs  []Job
}

// CaseWord begins the word of the kernel's command line that names the machine's case.
const CaseWord = "vmtest.case="

// Job is a program to run.
type Job struct {
	Case string // run only in machines of this case; empty: only in those without a case
	Name string // for messages
	Dir  string // the working directory
	Args []string
	Env  []string
	// Files lists the files to send back, and folders, which end in a slash. These folders, and
	// the folders of the files, are made before the job starts.
	Files []string
}

// Marshal returns the plan in the form that init reads.
func (p *Plan) Marshal() ([]byte, error) { return json.MarshalIndent(p, "", "\t") }

// ReadPlan reads a plan.
func ReadPlan(r io.Reader) (*Plan, error) {
	p := new(Plan)
	if err := json.NewDecoder(r).Decode(p); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	if p.Token == "" {
		return nil, fmt.Errorf("read the plan: it has no token")
	}
	return p, nil
}

// The words after the token.
const (
	wordUp    = "up"    // the kernel's release, quoted
	wordStart = "start" // number of the job
	wordEnd   = "end"   // number, exit status
	wordError = "error" // number, quoted text: the job could not be run, or a file could not be read
	wordFile  = "file"  // number, quoted path
	wordData  = "data"  // base64 of a part of a file, compressed
	wordSum   = "sum"   // SHA-256 of the uncompressed file
	wordOver  = "over"  // all jobs have ended
)
