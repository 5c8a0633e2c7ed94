// Package guest is what the host and the init of a virtual machine agree on: the
// plan of what to run, and the lines by which the guest says how it goes.
//
// The guest has one way out, its console, on which the kernel may write as well.
// So what init says stands in lines of its own that begin with a token, which
// the host made up for this machine; all other lines between the start and the
// end of a job are the job's output.
package guest

import (
	"encoding/json"
	"fmt"
	"io"
)

// PlanPath is where init finds the plan.
const PlanPath = "/vmtest/plan.json"

// Plan is all that a machine is to do.
type Plan struct {
	Token string
	Jobs  []Job
}

// CaseWord begins the word of the kernel's command line that names the machine's
// case.
const CaseWord = "vmtest.case="

// Job is a program to run.
type Job struct {
	Case string // only in machines of this case; empty: only in those without one
	Name string // for people
	Dir  string // the working directory
	Args []string
	Env  []string
	// Files are files to send back, and folders, which end in a slash. Folders, and
	// those that files lie in, are made before.
	Files []string
}

// Marshal returns the plan as init reads it.
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
	wordError = "error" // number, quoted text: the job could not be run, or a file not be read
	wordFile  = "file"  // number, quoted path
	wordData  = "data"  // base64 of a part of a file, compressed
	wordSum   = "sum"   // SHA-256 of the file as it was
	wordOver  = "over"  // all jobs have ended
)
