package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/vmtest/result"
	"rtrace-bpf/vmtest/suite"
)

func TestCases(t *testing.T) {
	h := &host{settings: &settings{arch: "amd64", append: "quiet"}}
	all, err := choices(h, "6.12 6.12:preempt 6.1:vng:lockdown", nil)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, c := range all {
		words = append(words, c.asked+" "+c.words())
	}
	if d := cmp.Diff([]string{
		" quiet", " quiet preempt=full vmtest.case=preempt", "vng quiet lockdown=confidentiality vmtest.case=lockdown",
	}, words); d != "" {
		t.Errorf("words for the kernels (-want +got):\n%s", d)
	}
	if _, err := choices(h, "6.12:preempted", nil); err == nil || !strings.Contains(err.Error(), "lockdown, preempt") {
		t.Errorf("an unknown case: %v", err)
	}
}

// Tests of cases run in the rows of their cases, unless --run is given.
func TestTestsOfCases(t *testing.T) {
	var m matrixRun
	if got := m.testsOf([]string{"", "preempt"}); got != "" {
		t.Errorf("with an ordinary row: %q, want all", got)
	}
	if got := m.testsOf([]string{"lockdown", "preempt"}); !strings.HasPrefix(got, "^TestLockedDown$|^TestStorm") {
		t.Errorf("of both cases: %q", got)
	}
	if d := cmp.Diff([]string{caseVariable + "=preempt"}, m.environmentIn("preempt", "")); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	m.userland = []string{"shell", "java"}
	env := strings.Join(m.environmentIn("", suite.GuestPrograms), " ")
	if !strings.Contains(env, " node") || strings.Contains(env, " java") || strings.Contains(env, caseVariable) {
		t.Errorf("environment of a guest without node: %s", env)
	}
	m.run = "TestA"
	if got := m.testsOf([]string{"", "preempt"}); got != "TestA" {
		t.Errorf("with --run: %q", got)
	}
}

// A test of a case that was renamed is reported as missing.
func TestCaseWithoutItsTest(t *testing.T) {
	m := matrixRun{specials: []string{"", "lockdown"}}
	ordinary := &result.Run{Tests: []*result.Test{{Name: "TestA", Status: result.Passed}}}
	special := &result.Run{Tests: []*result.Test{{Name: "TestB", Status: result.Passed}}}
	if d := cmp.Diff([]string{"^TestLockedDown$"}, m.unmatched([]*result.Run{ordinary, special})); d != "" {
		t.Errorf("missed (-want +got):\n%s", d)
	}
	if !ordinary.Good() || special.Good() {
		t.Errorf("good: %v and %v, want the row of the case to fail", ordinary.Good(), special.Good())
	}
}
