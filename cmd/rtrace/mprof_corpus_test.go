package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// mprofTables are the tables of an output, by title.
type mprofTables map[string][]string

// cutTables splits the output of mprof, the real one or ours.
func cutTables(t *testing.T, text string) mprofTables {
	t.Helper()
	tables, title := mprofTables{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := regexp.MustCompile(`^ *([A-Z]{4,}( [A-Z]{4,})+)( .*)?$`).FindStringSubmatch(line); m != nil {
			title = m[1]
		}
		tables[title] = append(tables[title], line)
	}
	if len(tables) != 4 {
		t.Fatalf("%d tables in\n%s", len(tables), text)
	}
	return tables
}

// mprofRow is a row of a table: cells by title. A repeated title has a number.
type textRow map[string]string

// rows cuts the rows of a table at the ends of the titles. In their line the last title is
// "function" or "%".
func (x mprofTables) rows(t *testing.T, title string) []textRow {
	t.Helper()
	lines := x[title]
	for i, line := range lines {
		if !strings.Contains(line, "bytes") || strings.Contains(line, "-") {
			continue
		}
		var rows []textRow
		for _, row := range lines[i+1:] {
			if strings.TrimSpace(row) != "" {
				rows = append(rows, cutRow(line, row))
			}
		}
		return rows
	}
	t.Fatalf("no titles in %q", lines)
	return nil
}

func cutRow(titles, row string) textRow {
	out := textRow{}
	from := 0
	for _, at := range regexp.MustCompile(`\S+`).FindAllStringIndex(titles, -1) {
		name := titles[at[0]:at[1]]
		for _, taken := out[name]; taken; _, taken = out[name] {
			name += "'"
		}
		to := at[1]
		if name == "function" {
			from, to = at[0], len(row)
		}
		out[name] = strings.TrimSpace(row[min(from, len(row)):min(to, len(row))])
		from = to
	}
	if f := out["function"]; strings.HasPrefix(f, "0x") {
		out["function"] = "0x" + strings.ToLower(f[2:])
	}
	return out
}

// byKey turns rows into a map, without the cells of the given titles.
func byKey(t *testing.T, rows []textRow, key string, without ...string) map[string]textRow {
	t.Helper()
	out := map[string]textRow{}
	for _, r := range rows {
		name := r[key]
		if out[name] != nil {
			t.Fatalf("%s is there twice", name)
		}
		for _, w := range without {
			delete(r, w)
		}
		out[name] = r
	}
	return out
}

func runMprof(t *testing.T, args ...string) mprofTables {
	t.Helper()
	out, errOut, code := runRtrace("", append([]string{"mprof", "-v", "--no-demangle"}, args...)...)
	if code != cli.OK {
		t.Fatalf("%d: %s", code, errOut)
	}
	return cutTables(t, out)
}

func realMprof(t *testing.T) mprofTables {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(mpatrolReal, "demo.mprof.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return cutTables(t, string(text))
}

// TestMprofBins: the tracing file has blocks of the same sizes as the real mprof's profile
// of the same run.
func TestMprofBins(t *testing.T) {
	const title = "ALLOCATION BINS"
	want := byKey(t, realMprof(t).rows(t, title), "size")
	got := byKey(t, runMprof(t, filepath.Join(mpatrolReal, "demo.trace")).rows(t, title), "size")
	if d := cmp.Diff(want, got); d != "" || len(want) != 12 {
		t.Errorf("%d rows (-mprof +got):\n%s", len(want), d)
	}
}

// TestMprofFunctions: the tracing file has the functions of the program itself. Libraries
// without debugging information have no names in it, but addresses in the profile: these
// rows are one row of ours, "??".
func TestMprofFunctions(t *testing.T) {
	theirs, ours := realMprof(t), runMprof(t, filepath.Join(mpatrolReal, "demo.trace"))
	for _, title := range []string{"DIRECT ALLOCATIONS", "MEMORY LEAKS"} {
		want, got := byKey(t, theirs.rows(t, title), "function"), byKey(t, ours.rows(t, title), "function")
		var unnamed []string
		for name := range want {
			if strings.HasPrefix(name, "0x") {
				unnamed = append(unnamed, name)
				delete(want, name)
			}
		}
		rest := got["??"]
		delete(got, "??")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-mprof +got):\n%s", title, d)
		}
		// 72704 (libstdc++) + 4096 (printf) + 30 * 31 (std::string), which is freed.
		if title == "DIRECT ALLOCATIONS" && (len(unnamed) != 3 || rest["bytes"] != "77730" || rest["count"] != "32" || rest["bytes'"] != "76800") {
			t.Errorf("%s: without names %v, %v", title, unnamed, rest)
		}
		if title == "MEMORY LEAKS" && (len(unnamed) != 2 || rest["bytes"] != "76800" || rest["count"] != "2") {
			t.Errorf("%s: without names %v, %v", title, unnamed, rest)
		}
	}
	if note := strings.Join(ours["ALLOCATION CALL GRAPH"], "\n"); !strings.Contains(note, "has no stacks") {
		t.Errorf("call graph of a trace without stacks:\n%s", note)
	}
}

// graphEdges are the rows of a call graph, by "caller > callee".
func graphEdges(t *testing.T, x mprofTables) (asParent, asChild map[string]textRow, functions int) {
	t.Helper()
	asParent, asChild = map[string]textRow{}, map[string]textRow{}
	number := regexp.MustCompile(` \[\d+\]$`)
	var parents, children []textRow
	self := ""
	name := func(r textRow) string { return number.ReplaceAllString(r["function"], "") }
	keep := func(to map[string]textRow, key string, r textRow) {
		to[key] = textRow{}
		for _, title := range []string{"bytes", "s", "m", "l", "x", "bytes'", "s'", "m'", "l'", "x'"} {
			to[key][title] = r[title]
		}
	}
	for _, r := range append(x.rows(t, "ALLOCATION CALL GRAPH"), textRow{"index": "-----"}) {
		switch {
		case strings.HasPrefix(r["index"], "-"):
			for _, p := range parents {
				keep(asParent, name(p)+" > "+self, p)
			}
			for _, c := range children {
				keep(asChild, self+" > "+name(c), c)
			}
			parents, children, self = nil, nil, ""
		case strings.HasPrefix(r["index"], "["):
			self = name(r)
			functions++
		case self == "":
			parents = append(parents, r)
		default:
			children = append(children, r)
		}
	}
	return asParent, asChild, functions
}

// TestMprofCallGraph makes a trace from the sums in the profile that the real mprof read,
// and compares the whole output except the bins.
func TestMprofCallGraph(t *testing.T) {
	theirs := realMprof(t)
	ours := runMprof(t, writeMPTL(t, readMPTL(t, filepath.Join(mpatrolReal, "demo.mptl"))))
	for _, title := range []string{"DIRECT ALLOCATIONS", "MEMORY LEAKS"} {
		want, got := byKey(t, theirs.rows(t, title), "function"), byKey(t, ours.rows(t, title), "function")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-mprof +got):\n%s", title, d)
		}
	}
	wantParents, wantChildren, wantFunctions := graphEdges(t, theirs)
	gotParents, gotChildren, gotFunctions := graphEdges(t, ours)
	if d := cmp.Diff(wantParents, gotParents); d != "" {
		t.Errorf("callers (-mprof +got):\n%s", d)
	}
	if d := cmp.Diff(wantChildren, gotChildren); d != "" {
		t.Errorf("callees (-mprof +got):\n%s", d)
	}
	if wantFunctions != 42 || gotFunctions != 42 || len(wantParents) < 40 {
		t.Errorf("%d functions, mprof has %d and %d calls", gotFunctions, wantFunctions, len(wantParents))
	}
}
