// Package result counts the results of tests, and prints them for people, as JUnit and as TAP.
package result

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Status is how a test ended.
type Status int

// The ways to end. A test that did not report its end has Failed.
const (
	Failed Status = iota
	Passed
	Skipped
)

// Test is a test, or a subtest, of a package.
type Test struct {
	Package string
	Name    string // empty: the package as a whole, which failed although none of its tests did
	Status  Status
	Seconds float64
	Output  string // what it printed
	ended   bool
}

// Run is the tests on one kernel.
type Run struct {
	Title   string // the series, or the file
	Version string // according to the kernel
	Arch    string
	Backend string
	Seconds float64
	Tests   []*Test
	// Missing is why nothing ran although nothing failed: no suite has the series.
	Missing string
	// Broken is why the machine did not finish.
	Broken string
}

// Count returns how many tests have a status.
func (r *Run) Count(s Status) int {
	n := 0
	for _, t := range r.Tests {
		if t.Status == s {
			n++
		}
	}
	return n
}

// Good reports whether nothing failed in a run.
func (r *Run) Good() bool {
	return r.Broken == "" && (r.Missing != "" || r.Count(Failed) == 0 && r.Count(Passed) > 0)
}

// Package collects the events of one package's tests.
type Package struct {
	run    *Run
	path   string
	tests  map[string]*Test
	output strings.Builder // output outside of tests
	passed bool            // the program's last line reported success
}

// Package returns the collector of a package.
func (r *Run) Package(path string) *Package {
	return &Package{run: r, path: path, tests: make(map[string]*Test)}
}

// event is what test2json writes (go doc test2json).
type event struct {
	Action  string
	Test    string
	Elapsed float64
	Output  string
}

// Read reads the output of go tool test2json to its end.
func (p *Package) Read(r io.Reader) error {
	for in := json.NewDecoder(r); ; {
		var e event
		if err := in.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the events of %s: %w", p.path, err)
		}
		p.add(&e)
	}
}

func (p *Package) add(e *event) {
	if e.Test == "" {
		p.output.WriteString(e.Output)
		p.passed = e.Action == "pass" || e.Action == "skip"
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &Test{Package: p.path, Name: e.Test}
		p.tests[e.Test] = t
		p.run.Tests = append(p.run.Tests, t)
	}
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			t.Output += e.Output
		}
	case "pass", "fail", "skip":
		t.Status = map[string]Status{"pass": Passed, "fail": Failed, "skip": Skipped}[e.Action]
		t.Seconds, t.ended = e.Elapsed, true
	}
}

// End records the exit status of the package's program, or why there is none. Tests that never
// ended become failures. The package becomes a failure if its program failed although all tests
// passed, or never reported that they had.
func (p *Package) End(status int, broken error) {
	failed := false
	for _, t := range p.run.Tests {
		if t.Package != p.path {
			continue
		}
		if !t.ended {
			t.Output += "it did not come to an end\n"
			// test2json reports open tests as failed, and so do we.
		}
		failed = failed || t.Status == Failed
	}
	switch {
	case broken != nil:
		p.fail(broken.Error())
	case status != 0 && !failed:
		p.fail(fmt.Sprintf("the test program ended with status %d", status))
	case !p.passed && !failed:
		p.fail("the test program ended with status 0, but never reported that its tests had passed")
	}
}

func (p *Package) fail(why string) {
	p.run.Tests = append(p.run.Tests, &Test{Package: p.path, Output: p.output.String() + why + "\n"})
}
