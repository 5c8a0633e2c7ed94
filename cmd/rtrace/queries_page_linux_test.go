package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// TestQueriesPage does what docs/queries.md asks a newcomer to do: it records three traces, adds them to
// tables and asks DuckDB, with the commands of the page. The answer is that of rtrace leaks.
func TestQueriesPage(t *testing.T) {
	testutil.Extra(t, "DuckDB for node, 70 MB")
	testutil.NeedBPF(t)
	duck := duckDB(t)
	page, sql := pageBlocks(t, shBlock), pageBlocks(t, sqlBlock)
	script, err := filepath.Abs("testdata/duckdb.mjs")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"rtrace", "rtrace-bpf"} {
		if err := os.Symlink(testutil.BuildCommand(t, "rtrace-bpf/cmd/"+name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, command := range map[string]string{
		"duckdb": fmt.Sprintf(`exec node '%s' '%s' "$@"`, script, duck),
		"sudo":   `exec "$@"`, // the test runs as root
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+command+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("fleet.sql", []byte(sql["setup"]), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(name string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", page[name])
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil || page[name] == "" {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return out
	}
	run("record")
	run("convert")
	var got [][]string
	if err := json.Unmarshal(run("ask"), &got); err != nil {
		t.Fatal(err)
	}
	type sums struct{ hosts, traces, bytes string }
	answer, want := map[string]sums{}, map[string]sums{}
	for _, row := range got {
		answer[row[0]] = sums{row[1], row[2], row[3]}
	}
	for service, files := range map[string][]string{"python3": {"web1/python.trace", "web2/python.trace"}, "sort": {"web2/sort.trace"}} {
		bytes := uint64(0)
		for _, file := range files {
			bytes += rtraceJSON[leakObject](t, "leaks", "--no-resolve", file).Bytes
		}
		if bytes == 0 {
			t.Errorf("%s: nothing is live", service)
		}
		want[service] = sums{fmt.Sprint(len(files)), fmt.Sprint(len(files)), fmt.Sprint(bytes)}
	}
	if d := cmp.Diff(want, answer, cmp.AllowUnexported(sums{})); d != "" {
		t.Errorf("(-rtrace +DuckDB): %s", d)
	}
	compared := string(run("compare"))
	for service, of := range want {
		line := regexp.MustCompile(`(?m)^ *(\d+) +[\d.]+ +\d+ +` + service + ` `)
		sum := uint64(0)
		for _, m := range line.FindAllStringSubmatch(compared, -1) {
			var n uint64
			if _, err := fmt.Sscan(m[1], &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if fmt.Sprint(sum) != of.bytes {
			t.Errorf("%s: rtrace leaks prints %d bytes, want %s\n%s", service, sum, of.bytes, compared)
		}
	}
	if _, errOut, code := runRtrace("", "report", "--folder-is", "host", "-o", "fleet.html", "web1", "web2"); code != cli.OK {
		t.Errorf("report: exit code %d: %s", code, errOut)
	}
}
