package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

var sqlBlock = regexp.MustCompile("(?ms)^```sql (\\w+)\n(.*?)^```$")

// shBlock finds the commands of a page that a test runs.
var shBlock = regexp.MustCompile("(?ms)^```sh (\\w+)\n(.*?)^```$")

// pageBlocks returns the blocks of docs/queries.md by name.
func pageBlocks(t testing.TB, blocks *regexp.Regexp) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range blocks.FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = m[2]
	}
	return all
}

// duckDB returns the folder that has DuckDB for node, which `make need-duckdb` makes.
func duckDB(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../bin/duckdb")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules/@duckdb/node-api")); err != nil {
		t.Fatalf("DuckDB is not installed (make need-duckdb installs it): %v", err)
	}
	return dir
}

// TestQueries runs the queries of docs/queries.md with DuckDB over 24 traces, and compares
// the answers with those of rtrace for each of the traces.
func TestQueries(t *testing.T) {
	testutil.Extra(t, "DuckDB for node, 70 MB")
	duck := duckDB(t)
	dir := t.TempDir()
	f := makeFleet(t, dir)
	for _, host := range fleetHosts {
		if _, errOut, code := runRtrace("", "convert", "-f", "parquet", "--no-resolve", "--host", host, "-o", filepath.Join(dir, "fleet.parquet"), filepath.Join(dir, host)); code != cli.OK {
			t.Fatal(code, errOut)
		}
	}
	windowed := twoSites(t)
	if _, errOut, code := runRtrace("", "convert", "-f", "parquet", "--no-resolve", "--host", "windowed", "-o", filepath.Join(dir, "fleet.parquet"), windowed); code != cli.OK {
		t.Fatal(code, errOut)
	}
	queries := pageBlocks(t, sqlBlock)
	setup := queries["setup"]
	delete(queries, "setup")
	input, err := json.Marshal(map[string]any{"setup": setup, "queries": queries})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/queries.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", script, duck)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(string(input)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string][][]string
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	wanted := f.answers(t)
	for _, g := range rtraceJSON[topEstimates](t, "top", "--by", "line", windowed).Groups {
		wanted["rates"] = append(wanted["rates"], []string{frameText(&g.Frames[0]), fmt.Sprint(g.Amount().Blocks), fmt.Sprint(g.Amount().Bytes)})
	}
	if len(queries) != 11 || len(wanted) != len(queries) {
		t.Fatalf("%d queries, %d are compared", len(queries), len(wanted))
	}
	for name, want := range wanted {
		got := answers[name]
		slices.SortFunc(got, slices.Compare[[]string])
		slices.SortFunc(want, slices.Compare[[]string])
		if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
			t.Errorf("%s (-rtrace +DuckDB): %s", name, d)
		}
	}
	for name, got := range fleetAnswers(t, folders(dir)) {
		slices.SortFunc(got, slices.Compare[[]string])
		if d := cmp.Diff(answers[name], got); d != "" || len(got) == 0 {
			t.Errorf("%s (-DuckDB +rtrace over all traces): %s", name, d)
		}
	}
}

// fleetAnswers asks rtrace about all traces at once.
func fleetAnswers(t *testing.T, folders []string) map[string][][]string {
	all := make(map[string][][]string)
	args := append([]string{"leaks", "--folder-is", "host"}, folders...)
	for _, g := range rtraceJSON[leakFleetObject](t, args...).Groups {
		all["live"] = append(all["live"], []string{frameText(&g.Frames[0]), fmt.Sprint(g.Traces), fmt.Sprint(g.Blocks), fmt.Sprint(g.Bytes)})
	}
	for _, g := range rtraceJSON[leakFleetObject](t, append(args, "--by", "stack", "--per", "service")...).Groups {
		if x := g.Growing; x != nil {
			all["growing"] = append(all["growing"], []string{g.Service, frameText(&g.Frames[0]), fmt.Sprint(x.Hosts), fmt.Sprint(x.Traces), fmt.Sprint(x.Bytes)})
		}
	}
	return all
}

// tallies add up numbers by the texts of a key.
type tallies map[string][]uint64

func (s tallies) add(key []string, numbers ...uint64) {
	k := strings.Join(key, "\x00")
	if s[k] == nil {
		s[k] = make([]uint64, len(numbers))
	}
	for i, n := range numbers {
		s[k][i] += n
	}
}

func (s tallies) rows() (rows [][]string) {
	for k, numbers := range s {
		row := strings.Split(k, "\x00")
		for _, n := range numbers {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	return rows
}

// rtraceJSON runs a subcommand with --json.
func rtraceJSON[T any](t *testing.T, args ...string) (x T) {
	t.Helper()
	out, errOut, code := runRtrace("", append(args, "--json")...)
	if code != cli.OK {
		t.Fatal(args, code, errOut)
	}
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// answers asks rtrace about each trace.
func (f members) answers(t *testing.T) map[string][][]string {
	live, growing, releases, age := tallies{}, tallies{}, tallies{}, tallies{}
	minute, temporary, lost, free := tallies{}, tallies{}, tallies{}, tallies{}
	peak := tallies{}
	lifetimes, hosts := map[string][]int64{}, map[string]map[string]bool{}
	for _, m := range f {
		for _, g := range rtraceJSON[leakObject](t, "leaks", m.file).Groups {
			site := frameText(&g.Frames[0])
			live.add([]string{site}, 1, g.Blocks, g.Bytes)
			if m.service == "api" && m.release == "aaaa" {
				releases.add([]string{site}, g.Bytes, 0)
			} else if m.service == "api" {
				releases.add([]string{site}, 0, g.Bytes)
			}
		}
		for _, g := range rtraceJSON[leakObject](t, "leaks", "--by", "stack", m.file).Groups {
			if g.Trend != nil && g.Trend.Growing {
				key := []string{m.service, frameText(&g.Frames[0])}
				growing.add(key, 0, 1, g.Bytes)
				k := strings.Join(key, "\x00")
				if hosts[k] == nil {
					hosts[k] = map[string]bool{}
				}
				hosts[k][m.host] = true
				growing[k][0] = uint64(len(hosts[k]))
			}
		}
		for _, g := range rtraceJSON[leakObject](t, "leaks", "--min-age", "10s", m.file).Groups {
			age.add([]string{frameText(&g.Frames[0])}, g.Blocks, g.Bytes)
		}
		for _, g := range rtraceJSON[topObject](t, "top", "--by", "line", "--to", "1m", m.file).Groups {
			minute.add([]string{m.service, frameText(&g.Frames[0])}, g.Allocated.Blocks, g.Allocated.Bytes)
		}
		for _, g := range rtraceJSON[topObject](t, "top", "--by", "line", m.file).Groups {
			temporary.add([]string{frameText(&g.Frames[0])}, g.Temporary.Blocks, g.Allocated.Blocks)
		}
		info := rtraceJSON[report](t, "info", m.file)
		for _, l := range info.Lost {
			lost.add([]string{filepath.Base(m.file), l.Reason}, l.Count)
		}
		peak.add([]string{m.service}, 1, 0)
		peak[m.service][1] = max(peak[m.service][1], info.Resources[0].Peak.Bytes)
		m.pair(t, lifetimes, free)
	}
	for k, n := range temporary {
		if n[0] == 0 {
			delete(temporary, k)
		}
	}
	all := map[string][][]string{
		"live": live.rows(), "growing": growing.rows(), "age": age.rows(), "minute": minute.rows(),
		"temporary": temporary.rows(), "peak": peak.rows(), "lost": lost.rows(), "fragmentation": free.rows(),
	}
	for site, n := range releases {
		all["releases"] = append(all["releases"], []string{site, fmt.Sprint(n[0]), fmt.Sprint(n[1]), fmt.Sprint(int64(n[1] - n[0]))})
	}
	for site, times := range lifetimes {
		slices.Sort(times)
		all["lifetimes"] = append(all["lifetimes"], []string{site, fmt.Sprint(len(times)), fmt.Sprint(times[(len(times)*99+99)/100-1])})
	}
	return all
}

// pair finds the lifetimes of blocks by site, from the calls as they are in the trace, and
// the most free memory of its heap.
func (m *member) pair(t *testing.T, lifetimes map[string][]int64, free tallies) {
	t.Helper()
	in, err := decoder.OpenFile(m.file, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	records, err := trace.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	type born struct {
		time int64
		site string
	}
	blocks, first := map[uint64]born{}, int64(0)
	end := func(id uint64, at int64) {
		if b, ok := blocks[id]; ok {
			lifetimes[b.site] = append(lifetimes[b.site], at-b.time)
			delete(blocks, id)
		}
	}
	for _, r := range records {
		c := &r.Call
		switch {
		case r.Kind == trace.KindHeapInfo:
			key := []string{m.service, fmt.Sprint((r.Time - first) / 30e9)}
			free.add(key, 0, 0)
			n := free[strings.Join(key, "\x00")]
			n[0], n[1] = max(n[0], r.HeapInfo.FordBlks), max(n[1], r.HeapInfo.Arena)
		case r.Kind != trace.KindCall:
			continue
		case c.Op == trace.OpFree:
			end(c.ID, r.Time)
			continue
		case c.Op == trace.OpMove:
			end(c.OldID, r.Time)
		}
		if r.Kind == trace.KindCall {
			if first == 0 {
				first = r.Time
			}
			blocks[c.ID] = born{r.Time, strings.Replace(c.Stack.Names[0], "()", "", 1)}
		}
	}
}
