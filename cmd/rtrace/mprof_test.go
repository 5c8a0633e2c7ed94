package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// churn writes a small trace with stacks.
func churn(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "churn.rtrace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := writeChurn(f, 2000); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMprofJSON: the views of a trace agree with each other, and with leaks.
func TestMprofJSON(t *testing.T) {
	file := churn(t)
	out, errOut, code := runRtrace("", "mprof", "--json", "-v", "-n", "0", file)
	if code != cli.OK {
		t.Fatal(code, errOut)
	}
	var x mprofObject
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	if x.Total.Allocated.Count != 2000 || x.Total.Unfreed.Count != 40 {
		t.Errorf("total %+v", x.Total)
	}
	var bins, direct, self, leaks mprofUsage
	for _, b := range x.Bins {
		bins.Allocated.Count += b.Allocated.Blocks
		bins.Allocated.Bytes += b.Allocated.Bytes
		bins.Unfreed.Count += b.Unfreed.Blocks
		bins.Unfreed.Bytes += b.Unfreed.Bytes
	}
	for _, r := range x.Direct {
		direct.add(&r.mprofUsage)
	}
	for _, f := range x.Functions {
		self.add(&f.Self)
	}
	for _, r := range x.Leaks {
		leaks.add(&r.mprofUsage)
	}
	if d := cmp.Diff(x.Total, direct); d != "" {
		t.Errorf("direct (-total +got):\n%s", d)
	}
	if d := cmp.Diff(x.Total, self); d != "" {
		t.Errorf("what functions allocate themselves (-total +got):\n%s", d)
	}
	if d := cmp.Diff(x.Total.Unfreed, leaks.Unfreed); d != "" {
		t.Errorf("leaks (-total +got):\n%s", d)
	}
	for _, s := range [...][2]mprofSums{{x.Total.Allocated, bins.Allocated}, {x.Total.Unfreed, bins.Unfreed}} {
		if s[0].Count != s[1].Count || s[0].Bytes != s[1].Bytes {
			t.Errorf("bins have %d, %d of %+v", s[1].Count, s[1].Bytes, s[0])
		}
	}
	l := leaksOf(t, file)
	if l.Bytes != leaks.Unfreed.Bytes || l.Blocks != leaks.Unfreed.Count || len(l.Groups) != len(x.Leaks) {
		t.Errorf("rtrace leaks: %d bytes in %d blocks, %d groups; mprof: %+v, %d rows", l.Bytes, l.Blocks, len(l.Groups), leaks.Unfreed, len(x.Leaks))
	}
	if len(x.Calls) == 0 || x.Calls[0].Caller != 1 {
		t.Errorf("calls %+v", x.Calls)
	}
}

func (u *mprofUsage) add(v *mprofUsage) {
	for _, s := range [...][2]*mprofSums{{&u.Allocated, &v.Allocated}, {&u.Unfreed, &v.Unfreed}} {
		s[0].Count += s[1].Count
		s[0].Bytes += s[1].Bytes
		for c := range s[0].Classes {
			s[0].Classes[c] += s[1].Classes[c]
			s[0].Counts[c] += s[1].Counts[c]
		}
	}
}

// The forms of lines in our dot files, with strings as Graphviz reads them.
var (
	dotString = `"(?:[^"\\]|\\.)*"`
	dotAttrs  = `\[\w+=(?:` + dotString + `|[\w.]+)(?:, \w+=(?:` + dotString + `|[\w.]+))*\]`
	dotNode   = regexp.MustCompile(`^\t(n\d+) ` + dotAttrs + `;$`)
	dotEdge   = regexp.MustCompile(`^\t(n\d+) -> (n\d+) ` + dotAttrs + `;$`)
	dotOther  = regexp.MustCompile(`^\t(?:label=` + dotString + `|(?:node|edge) ` + dotAttrs + `);$`)
)

// checkDot reads a dot file and returns its numbers of nodes and edges.
func checkDot(t *testing.T, text string) (nodes, edges int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != "digraph allocations {" || lines[len(lines)-1] != "}" {
		t.Errorf("begins with %q, ends with %q", lines[0], lines[len(lines)-1])
	}
	known := map[string]bool{}
	for _, line := range lines[1 : len(lines)-1] {
		if m := dotEdge.FindStringSubmatch(line); m != nil {
			edges++
			if !known[m[1]] || !known[m[2]] {
				t.Errorf("%q is of a function that is not there", line)
			}
		} else if m := dotNode.FindStringSubmatch(line); m != nil {
			nodes++
			if known[m[1]] {
				t.Errorf("%s is there twice", m[1])
			}
			known[m[1]] = true
		} else if !dotOther.MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	return nodes, edges
}

func TestMprofDot(t *testing.T) {
	out, errOut, code := runRtrace("", "mprof", "-g", "-", churn(t))
	if code != cli.OK {
		t.Fatal(code, errOut)
	}
	if nodes, edges := checkDot(t, out); nodes < 100 || edges < 100 {
		t.Errorf("%d nodes, %d edges", nodes, edges)
	}
	// Names with everything that could end a string or a line: two become the same.
	trace := fmt.Sprintln(`{"format":"rtrace-jsonl","version":1}`)
	for i, name := range []string{`a"b`, `a\`, `\"`, `a\nb`, "a\nb", `];}`, "ä→", `operator"" _x(char)`, "a\tb"} {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		trace += fmt.Sprintf(`{"kind":"call","seq":%d,"op":"alloc","id":"0x%x","size":5,"stack_end":"complete","stack":["0x1","0x2"],"names":[%s,"main()"]}`+"\n", i+1, 16*(i+1), quoted)
	}
	out, errOut, code = runRtrace(trace, "mprof", "-g", "-")
	if code != cli.OK {
		t.Fatal(code, errOut)
	}
	if nodes, edges := checkDot(t, out); nodes != 9 || edges != 8 {
		t.Errorf("%d nodes, %d edges in\n%s", nodes, edges, out)
	}
}
