package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/cli"
)

// sums are figures by function or stack.
type sums map[string]uint64

func (s sums) add(key string, n uint64) {
	if n != 0 {
		s[key] += n
	}
}

// selfTrace compiles and runs testdata/selftrace.cpp. It returns the trace that the program
// wrote about itself, and the program's own figures for its functions.
func selfTrace(t *testing.T) (file string, truth [stacks.Values]sums) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "selftrace")
	if out, err := exec.Command("g++", "-std=c++17", "-g", "-O1", "-pthread", "-o", program, "testdata/selftrace.cpp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines, said bytes.Buffer
	run := exec.Command(program)
	run.Stdout, run.Stderr = &lines, &said
	if err := run.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	file = filepath.Join(dir, "self.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for v := range truth {
		truth[v] = sums{}
	}
	for line := range strings.Lines(said.String()) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		for i, v := range [...]stacks.Value{stacks.InuseObjects, stacks.InuseSpace, stacks.AllocObjects, stacks.AllocSpace} {
			truth[v].add(withoutParameters(fields[0]), parse(t, fields[i+1]))
		}
	}
	if len(truth[stacks.AllocSpace]) < 10 {
		t.Fatalf("the program said %q", said.String())
	}
	return file, truth
}

func parse(t *testing.T, text string) (n uint64) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// withoutParameters returns the part of a function's name on which compilers agree:
// debugging information has parameters only for some.
func withoutParameters(name string) string {
	if i := strings.LastIndexByte(name, '('); i > 0 && !strings.Contains(name, "lambda") {
		return name[:i]
	}
	return name
}

// pprofPath is the path of pprof. go tool itself takes longer than the program that it runs.
var pprofPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "pprof").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	// Not built yet.
	_ = exec.Command("go", "tool", "pprof", "-h").Run()
	return path, nil
})

// pprofTool runs go tool pprof.
func pprofTool(t *testing.T, args ...string) string {
	t.Helper()
	path, err := pprofPath()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, append([]string{"-symbolize=none", "-nodefraction=0", "-nodecount=1000000"}, args...)...)
	c.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Run(); err != nil {
		t.Fatalf("go tool pprof %v: %v: %s", args, err, errOut.String())
	}
	return out.String()
}

var topLine = regexp.MustCompile(`(?m)^ *(\d+)B? +\S+% +\S+% +(\d+)B? +\S+% +(.*?)(?: \(inline\))?$`)

// topOf returns the functions' own allocations according to go tool pprof -top.
func topOf(t *testing.T, file string, v stacks.Value, args ...string) sums {
	t.Helper()
	flat := sums{}
	for _, m := range topLine.FindAllStringSubmatch(pprofTool(t, append(args, "-top", "-unit=B", "-sample_index="+v.String(), file)...), -1) {
		flat.add(m[3], parse(t, m[1]))
	}
	return flat
}

// profileOf converts a trace to pprof.
func profileOf(t *testing.T, file string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "heap.pprof")
	_, errOut, code := runRtrace("", append([]string{"convert", "-f", "pprof", "-o", out, file}, args...)...)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("convert %s: %d, %s", file, code, errOut)
	}
	return out
}

// TestProfilesOfSelf compares each format with the program's own figures, by function, with
// inlined functions and those that only the C++ library calls directly.
func TestProfilesOfSelf(t *testing.T) {
	file, truth := selfTrace(t)
	profile := profileOf(t, file, "-r")
	for v, want := range truth {
		v := stacks.Value(v)
		got := sums{}
		for name, n := range topOf(t, profile, v) {
			got.add(withoutParameters(name), n)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pprof %v (-program +pprof):\n%s", v, d)
		}
		lines, errOut, code := runRtrace("", "convert", "-r", "-f", "folded", "--value", v.String(), file)
		if code != cli.OK {
			t.Fatal(code, errOut)
		}
		got = sums{}
		for line := range strings.Lines(lines) {
			stack, n, _ := strings.Cut(reverse(strings.TrimSpace(line)), " ")
			frames := strings.Split(reverse(n), ";")
			got.add(withoutParameters(frames[len(frames)-1]), parse(t, reverse(stack)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("folded %v (-program +folded):\n%s", v, d)
		}
	}
	{
		got, all := sums{}, truth[stacks.InuseSpace]
		for _, g := range leaksOf(t, file, "-r", "--by", "function").Groups {
			got.add(withoutParameters(g.Frames[0].Function), g.Bytes)
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("leaks by function (-program +leaks):\n%s", d)
		}
	}
	compareSpeedscope(t, file, truth)
	compareSymbols(t, file, truth[stacks.InuseSpace])
}

// compareSymbols has pprof find the names itself, which requires the right mappings, offsets
// and build IDs.
func compareSymbols(t *testing.T, file string, truth sums) {
	program := filepath.Join(filepath.Dir(file), "selftrace")
	notes, err := exec.Command("readelf", "-n", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(notes)
	profile := profileOf(t, file, "-r")
	raw := pprofTool(t, "-raw", profile)
	if id == nil || !strings.Contains(raw, program+" "+string(id[1])+" [FN]") {
		t.Errorf("no mapping of the program with build-id %s:\n%s", id, raw)
	}
	got := topOf(t, profileOf(t, file, "--caller", "innermost"), stacks.InuseSpace, "-symbolize=local")
	for _, name := range []string{"leak_c", "recurse", "moves"} {
		if got[name] != truth[name] {
			t.Errorf("pprof itself finds %v in %s, not %d", got[name], name, truth[name])
		}
	}
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// compareSpeedscope checks the structure against the schema of speedscope, and adds up the
// innermost frames.
func compareSpeedscope(t *testing.T, file string, truth [stacks.Values]sums) {
	out, errOut, code := runRtrace("", "convert", "-r", "-f", "speedscope", "--value", "alloc_space", file)
	if code != cli.OK {
		t.Fatal(code, errOut)
	}
	// Fields and types of FileFormat.File of file-format-schema.json; those
	// of a "sampled" profile are all required.
	var x struct {
		Schema   string `json:"$schema"`
		Name     string `json:"name"`
		Exporter string `json:"exporter"`
		Active   int    `json:"activeProfileIndex"`
		Shared   struct {
			Frames []struct {
				Name string `json:"name"`
				File string `json:"file"`
				Line int    `json:"line"`
			} `json:"frames"`
		} `json:"shared"`
		Profiles []struct {
			Type    string   `json:"type"`
			Name    string   `json:"name"`
			Unit    string   `json:"unit"`
			Start   *uint64  `json:"startValue"`
			End     *uint64  `json:"endValue"`
			Samples [][]int  `json:"samples"`
			Weights []uint64 `json:"weights"`
		} `json:"profiles"`
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		t.Fatal(err)
	}
	if x.Schema != "https://www.speedscope.app/file-format-schema.json" || x.Active != int(stacks.AllocSpace) || len(x.Profiles) != stacks.Values {
		t.Fatalf("schema %q, %d profiles, active %d", x.Schema, len(x.Profiles), x.Active)
	}
	withLines := 0
	for _, f := range x.Shared.Frames {
		if f.Name == "" {
			t.Error("a frame without name")
		}
		if f.Line > 0 {
			withLines++
		}
	}
	if withLines < 10 {
		t.Errorf("%d frames have lines", withLines)
	}
	for i, p := range x.Profiles {
		unit := map[bool]string{true: "bytes", false: "none"}[strings.HasSuffix(p.Name, "_space")]
		if p.Type != "sampled" || p.Unit != unit || p.Start == nil || p.End == nil || len(p.Samples) != len(p.Weights) {
			t.Fatalf("profile %d: %+v", i, p)
		}
		var sum uint64
		got := sums{}
		for j, s := range p.Samples {
			sum += p.Weights[j]
			got.add(withoutParameters(x.Shared.Frames[s[len(s)-1]].Name), p.Weights[j])
		}
		if *p.Start != 0 || *p.End != sum {
			t.Errorf("profile %d: from %d to %d, the sum is %d", i, *p.Start, *p.End, sum)
		}
		if d := cmp.Diff(truth[i], got); d != "" || p.Name != stacks.Value(i).String() {
			t.Errorf("speedscope %s (-program +speedscope):\n%s", p.Name, d)
		}
	}
}

var (
	rawSample   = regexp.MustCompile(`(?m)^ +(\d+) +(\d+) +(\d+) +(\d+): ([\d ]+?) ?$`)
	rawLocation = regexp.MustCompile(`(?m)^ +(\d+): 0x([0-9a-f]+) `)
)

// stacksOf returns what is in use by stacks of addresses, according to pprof.
func stacksOf(t *testing.T, file string) sums {
	t.Helper()
	raw := pprofTool(t, "-raw", file)
	address := map[string]string{}
	for _, m := range rawLocation.FindAllStringSubmatch(raw, -1) {
		var n uint64
		if _, err := fmt.Sscanf(m[2], "%x", &n); err != nil {
			t.Fatal(err)
		}
		address[m[1]] = fmt.Sprintf("0x%016x", n+1)
	}
	got := sums{}
	for _, m := range rawSample.FindAllStringSubmatch(raw, -1) {
		var frames []string
		for id := range strings.FieldsSeq(m[5]) {
			frames = append(frames, address[id])
		}
		got.add(strings.Join(frames, " "), parse(t, m[4]))
	}
	return got
}

// TestProfilesLikeLeaks compares the results of go tool pprof for real traces with leaks,
// stack by stack, and for traces with names or callers by function.
func TestProfilesLikeLeaks(t *testing.T) {
	self, _ := selfTrace(t)
	files := []string{self}
	for _, pattern := range []string{spRtraceCorpus + "/*.rtrace", mpatrolReal + "/*.trace"} {
		m, err := filepath.Glob(pattern)
		if err != nil || len(m) == 0 {
			t.Fatal(err, "no corpus")
		}
		files = append(files, m...)
	}
	withStacks, withNames := 0, 0
	for _, file := range files {
		profile := profileOf(t, file)
		leaks := leaksOf(t, file, "--by", "stack", "-a")
		want, functions, addresses := sums{}, sums{}, true
		for _, g := range leaks.Groups {
			var frames []string
			for _, f := range g.Frames {
				frames = append(frames, f.Address)
				addresses = addresses && f.Address != ""
			}
			want.add(strings.Join(frames, " "), g.Bytes)
			name := g.Frames[0].Function
			if name == "" {
				name = "??"
			}
			functions.add(name, g.Bytes)
		}
		if addresses {
			withStacks += len(want)
			if d := cmp.Diff(want, stacksOf(t, profile)); d != "" {
				t.Errorf("%s by stack (-leaks +pprof):\n%s", file, d)
			}
			continue
		}
		withNames += len(functions)
		if d := cmp.Diff(functions, topOf(t, profile, stacks.InuseSpace)); d != "" {
			t.Errorf("%s by function (-leaks +pprof):\n%s", file, d)
		}
	}
	if withStacks < 50 || withNames < 20 {
		t.Errorf("only %d stacks and %d functions were compared", withStacks, withNames)
	}
}

// TestTopOfSelf compares a program's own figures with top.
func TestTopOfSelf(t *testing.T) {
	file, truth := selfTrace(t)
	var got [stacks.Values]sums
	for v := range got {
		got[v] = sums{}
	}
	for _, g := range objectOf[topObject](t, "top", "-r", "--json", file).Groups {
		name := withoutParameters(g.Frames[0].Function)
		got[stacks.AllocObjects].add(name, g.Allocated.Blocks)
		got[stacks.AllocSpace].add(name, g.Allocated.Bytes)
		got[stacks.InuseObjects].add(name, g.Live.Blocks)
		got[stacks.InuseSpace].add(name, g.Live.Bytes)
		if name == "temporary" && (g.Temporary != amount{5, 240} || g.Peak != amount{1, 48}) {
			t.Errorf("of the temporary blocks: %+v", g)
		}
	}
	if d := cmp.Diff(truth, got); d != "" {
		t.Errorf("(-program +top):\n%s", d)
	}
	// The worker is the last to allocate.
	diff := objectOf[diffObject](t, "diff", "-r", "--json", "--from", "worker begins", file)
	if len(diff.Groups) != 1 || diff.Groups[0].Frames[0].Function != "leak_c" || diff.Groups[0].Bytes != 600 {
		t.Errorf("after the mark: %+v", diff)
	}
}
