package main

import (
	"errors"
	"strings"
	"testing"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/result"
	"rtrace-bpf/vmtest/suite"
)

// Output of a damaged console, or of a guest that ran other jobs, is an error and not a result.
func TestFollowerRefuses(t *testing.T) {
	packages := []suite.Package{{Path: "m/a"}, {Path: "m/b"}}
	for name, test := range map[string]struct {
		event guest.Event
		want  string
	}{
		"start of another case": {guest.Event{Kind: guest.Start, Job: 0}, "job 0, which does not belong to its case"},
		"start of no job":       {guest.Event{Kind: guest.Start, Job: 4}, "job 4"},
		"end of another case":   {guest.Event{Kind: guest.End, Job: 1}, "job 1"},
		"end without a start":   {guest.Event{Kind: guest.End, Job: 2}, "m/a, whose start is not on the console"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &follower{m: &matrixRun{}, r: &result.Run{}, packages: packages, first: len(packages)}
			if err := f.handle(t.Context(), test.event); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if f.end(errors.New("refused")); f.r.Good() {
				t.Error("the run is good")
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	good := &result.Run{Tests: []*result.Test{{Name: "TestA", Status: result.Passed}}}
	bad := &result.Run{Tests: []*result.Test{{Name: "TestA", Status: result.Failed}}}
	broken, missing := &result.Run{Broken: "it stopped"}, &result.Run{Missing: "no suite has it"}
	for name, test := range map[string]struct {
		runs []*result.Run
		want int
	}{
		"good":         {[]*result.Run{good, good}, exitGood},
		"some missing": {[]*result.Run{missing, good}, exitMissing},
		"all missing":  {[]*result.Run{missing, missing}, exitBroken},
		"failed":       {[]*result.Run{good, missing, bad}, exitFailed},
		"broken":       {[]*result.Run{bad, broken}, exitBroken},
		"nothing ran":  {[]*result.Run{good, {}}, exitFailed},
	} {
		if got := exitCode(test.runs); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}
