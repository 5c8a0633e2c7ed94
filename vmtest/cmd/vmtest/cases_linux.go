package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/result"
	"rtrace-bpf/vmtest/suite"
	"rtrace-bpf/vmtest/userland"
)

// bootCase is a special way to boot a kernel, and the tests of what is special then. It is
// selected after a series, as in 6.12:preempt, and has a row of its own in all results. Tests
// find its name in a variable (package testutil, VMCase).
type bootCase struct {
	words string // for the kernel's command line
	tests string // in the form of go test -run
}

// Variables for tests (package testutil).
const (
	caseVariable  = "RTRACE_VM_CASE"
	lacksVariable = "RTRACE_GUEST_LACKS"
)

// bootCases holds the cases by name. README.md explains each.
var bootCases = map[string]bootCase{
	"preempt": {
		words: "preempt=full",
		tests: "^TestStormOfThreads$|^TestEveryCallOfEveryThread$//-8$|^TestStacksAreExact$|^TestReallocRace$|^TestThreadsThatExit$",
	},
	"lockdown": {
		words: "lockdown=confidentiality",
		tests: "^TestLockedDown$",
	},
}

// caseNames lists the cases.
func caseNames() []string { return slices.Sorted(maps.Keys(bootCases)) }

// words returns the additional words for the kernel's command line.
func (c *choice) words() string {
	words := c.h.append
	if c.special != "" {
		words += " " + bootCases[c.special].words + " " + guest.CaseWord + c.special
	}
	return strings.TrimSpace(words)
}

// tests returns which tests to run in a case, "" for all. --run replaces the tests of cases.
func (m *matrixRun) tests(special string) string {
	return cmp.Or(m.run, bootCases[special].tests)
}

// testsOf returns which tests to run in any of the cases, "" for all.
func (m *matrixRun) testsOf(cases []string) string {
	var patterns []string
	for _, special := range cases {
		pattern := m.tests(special)
		if pattern == "" {
			return ""
		}
		if !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	return strings.Join(patterns, "|")
}

// arguments returns the arguments for a test program that runs these tests, "" for all.
func (m *matrixRun) arguments(tests string) []string {
	args := []string{"-test.v=test2json", "-test.timeout=" + m.timeout}
	if !m.full {
		args = append(args, "-test.short=true")
	}
	if tests != "" {
		args = append(args, "-test.run="+tests)
	}
	if m.skip != "" {
		args = append(args, "-test.skip="+m.skip)
	}
	return args
}

// environmentIn returns the environment for the tests in a case. programs is the guest's folder
// with the programs to trace.
func (m *matrixRun) environmentIn(special, programs string) []string {
	env := m.environment()
	if programs == suite.GuestPrograms { // virtme-ng's guests have everything that the host has
		lacks := append(userland.Lacks(m.userland), "go", "libc6-dbg") // no part contains these
		env = append(env, lacksVariable+"="+strings.Join(lacks, " "))
	}
	if special != "" {
		env = append(env, caseVariable+"="+special)
	}
	return env
}

// casesOf lists the cases of the choices. The empty case means an ordinary boot.
func casesOf(all []*choice) []string {
	var out []string
	for _, c := range all {
		if !slices.Contains(out, c.special) {
			out = append(out, c.special)
		}
	}
	return out
}

// unmatched returns the names of tests, in --run or of a case, that no test had, and records
// them as failures.
func (m *matrixRun) unmatched(runs []*result.Run) []string {
	names := result.Unmatched(m.run, runs)
	for i, r := range runs {
		if special := m.specials[i]; m.run == "" && special != "" {
			names = append(names, result.Unmatched(bootCases[special].tests, []*result.Run{r})...)
		}
	}
	return names
}
