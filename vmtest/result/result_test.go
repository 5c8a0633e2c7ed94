package result

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Output of a test program with -test.v=test2json, which go test uses.
const output = "\x16=== RUN   TestPass\n\x16--- PASS: TestPass (1.50s)\n" +
	"\x16=== RUN   TestFail\n    a_test.go:7: want <1> & got\x1b[0m 2\n\x16--- FAIL: TestFail (0.00s)\n" +
	"\x16=== RUN   TestSkip\n    a_test.go:9: SKIPPED: no # here\n\x16--- SKIP: TestSkip (0.00s)\n"

const (
	pass = "\x16=== NAME  \n\x16PASS\n"
	fail = "\x16=== NAME  \n\x16FAIL\n"
)

// converted returns the output after go tool test2json.
func converted(t *testing.T, text string) io.Reader {
	t.Helper()
	cmd := exec.Command("go", "tool", "test2json", "-t", "-p", "m/a")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out)
}

func collected(t *testing.T, text string, status int, broken error) *Run {
	t.Helper()
	r := &Run{Title: "6.1", Arch: "amd64", Version: "6.1.0-56", Backend: "qemu", Seconds: 12.3}
	p := r.Package("m/a")
	if err := p.Read(converted(t, text)); err != nil {
		t.Fatal(err)
	}
	p.End(status, broken)
	return r
}

func TestCounts(t *testing.T) {
	tests := map[string]struct {
		text                    string
		status                  int
		broken                  error
		passed, failed, skipped int
		good                    bool
	}{
		"all":            {output + fail, 1, nil, 1, 1, 1, false},
		"passed":         {"\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n" + pass, 0, nil, 1, 0, 0, true},
		"only skipped":   {"\x16=== RUN   TestA\n\x16--- SKIP: TestA (0.00s)\n" + pass, 0, nil, 0, 0, 1, false},
		"nothing ran":    {"testing: warning: no tests to run\n" + pass, 0, nil, 0, 0, 0, false},
		"panic":          {"\x16=== RUN   TestA\npanic: oh\n\ngoroutine 1 [running]:\nexit status 2\n", 2, nil, 0, 1, 0, false},
		"killed":         {"\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n\x16=== RUN   TestB\n", 137, nil, 1, 1, 0, false},
		"machine stops":  {"\x16=== RUN   TestA\n", 0, errors.New("the machine stopped"), 0, 2, 0, false},
		"stops at once":  {"", 0, errors.New("the machine stopped"), 0, 1, 0, false},
		"exit":           {"\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n", 0, nil, 0, 1, 0, false},
		"exit at once":   {"", 0, nil, 0, 1, 0, false},
		"leak at an end": {"\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n" + pass, 3, nil, 1, 1, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := collected(t, test.text, test.status, test.broken)
			got := []int{r.Count(Passed), r.Count(Failed), r.Count(Skipped)}
			if d := cmp.Diff([]int{test.passed, test.failed, test.skipped}, got); d != "" || r.Good() != test.good {
				t.Errorf("good %v; passed, failed, skipped (-want +got):\n%s", r.Good(), d)
			}
		})
	}
}

// runs returns runs of kernels with all outcomes.
func runs(t *testing.T) []*Run {
	return []*Run{
		collected(t, output+fail, 1, nil),
		{Title: "5.10", Arch: "amd64", Missing: "no suite has it"},
		{Title: "bzImage", Arch: "amd64", Broken: "the machine\nstopped"},
	}
}

func TestTAP(t *testing.T) {
	var b strings.Builder
	if err := TAP(&b, runs(t)); err != nil {
		t.Fatal(err)
	}
	const want = `TAP version 13
1..5
ok 1 - linux-6.1-amd64 m/a TestPass
not ok 2 - linux-6.1-amd64 m/a TestFail
#     a_test.go:7: want <1> & got?[0m 2
# --- FAIL: TestFail (0.00s)
ok 3 - linux-6.1-amd64 m/a TestSkip # SKIP SKIPPED: no # here
ok 4 - linux-5.10-amd64 machine # SKIP no suite has it
not ok 5 - linux-bzImage-amd64 machine
# the machine stopped
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("TAP (-want +got):\n%s", d)
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := JUnit(&b, runs(t)); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	if len(got.Suites) != 3 {
		t.Fatalf("%d suites\n%s", len(got.Suites), b.Bytes())
	}
	s := got.Suites[0]
	if s.Name != "linux-6.1-amd64" || s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 || s.Errors != 0 || s.Seconds != "12.300" || len(s.Cases) != 3 {
		t.Errorf("suite %+v", s)
	}
	want := []junitCase{
		{Class: "m/a", Name: "TestPass", Seconds: "1.500"},
		{Class: "m/a", Name: "TestFail", Seconds: "0.000", Failure: &junitMessage{
			"a_test.go:7: want <1> & got?[0m 2", "    a_test.go:7: want <1> & got?[0m 2\n--- FAIL: TestFail (0.00s)\n",
		}},
		{Class: "m/a", Name: "TestSkip", Seconds: "0.000", Skipped: &junitMessage{Message: "SKIPPED: no # here"}},
	}
	if d := cmp.Diff(want, s.Cases); d != "" {
		t.Errorf("cases (-want +got):\n%s", d)
	}
	if s := got.Suites[1]; s.Skipped != 1 || s.Tests != 1 || s.Cases[0].Skipped.Message != "no suite has it" {
		t.Errorf("missing: %+v", s)
	}
	if s := got.Suites[2]; s.Errors != 1 || s.Tests != 1 || s.Cases[0].Error.Message != "the machine\nstopped" {
		t.Errorf("broken: %+v", s)
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	all := runs(t)
	for _, r := range all {
		Failures(&b, r)
		Skips(&b, r)
	}
	if err := Table(&b, all); err != nil {
		t.Fatal(err)
	}
	const want = `--- FAIL on linux-6.1-amd64: m/a TestFail (0.00s)
    a_test.go:7: want <1> & got?[0m 2
--- FAIL: TestFail (0.00s)
*** SKIPPED on linux-6.1-amd64: SKIPPED: no # here
***     a.TestSkip
*** SKIPPED: linux-5.10-amd64 did not run: no suite has it ***
--- FAIL on linux-bzImage-amd64: the machine
stopped
kernel   arch   version   by    passed  failed  skipped  seconds  
6.1      amd64  6.1.0-56  qemu  1       1       1        12       FAILED
5.10     amd64  -         -     0       0       0        0        NOT RUN
bzImage  amd64  -         -     0       0       0        0        FAILED
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
}
