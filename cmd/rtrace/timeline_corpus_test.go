package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

const timelineCorpus = "../../testdata/corpus/sp-rtrace"

// timelineReports are the reports by their letters.
var timelineReports = map[string]string{"t": "totals", "a": "activity", "l": "lifetime", "c": "histogram-count", "s": "histogram-size"}

// timelineRun makes a report of a trace and returns its text and its series.
func timelineRun(t *testing.T, report, trace string, args ...string) (text string, series map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "series")
	args = append([]string{"timeline", "-" + report, "--data", dir, trace}, args...)
	code, text, errOut := try(cli.Streams{}, args...)
	if code != cli.OK || errOut != "" {
		t.Fatalf("%v: exit code %d, %s", args, code, errOut)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	series = make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		series[filepath.Base(f)] = string(data)
	}
	return text, series
}

// originalSeries are those of sp-rtrace-timeline, and the rows of its table.
func originalSeries(t *testing.T, name, report string) (series map[string]string, table [][]string) {
	t.Helper()
	dir := filepath.Join(timelineCorpus, "out", name, "timeline")
	files, err := filepath.Glob(dir + "/" + report + "-timeline*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	series = make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(f) == ".cfg" {
			table = labels(t, string(data))
			continue
		}
		series[strings.TrimPrefix(filepath.Base(f), report+"-")] = string(data)
	}
	return series, table
}

var label = regexp.MustCompile(`(?m)^set label "(.*)" at character (\d+),(\d+) `)

// labels returns the rows of the table in a script for gnuplot: texts by line, and in a line
// by column.
func labels(t *testing.T, script string) [][]string {
	t.Helper()
	type cell struct {
		row, column int
		text        string
	}
	var cells []cell
	for _, m := range label.FindAllStringSubmatch(script, -1) {
		column, _ := strconv.Atoi(m[2])
		row, _ := strconv.Atoi(m[3])
		cells = append(cells, cell{-row, column, m[1]})
	}
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.column, b.column)) })
	var rows [][]string
	for i, c := range cells {
		if i == 0 || cells[i-1].row != c.row {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], c.text)
	}
	if len(rows) < 3 {
		t.Fatalf("a table of %d rows", len(rows))
	}
	return rows
}

func timelineCases(each func(name, report, trace string, args []string)) {
	for _, name := range []string{"c-leaks", "context", "multi", "toggle-0"} {
		for report := range timelineReports {
			var args []string
			if name == "multi" {
				args = []string{"--filter-resource", "memory"}
			}
			each(name, report, filepath.Join(timelineCorpus, name+".rtrace"), args)
			each(name, report, filepath.Join(timelineCorpus, "out", name, "plain.txt"), args)
		}
	}
}

// With --legacy, all series and the numbers of the tables are those of the original byte for
// byte, for binary traces and for texts.
func TestTimelineLegacy(t *testing.T) {
	compared, rows := 0, 0
	timelineCases(func(name, report, trace string, args []string) {
		want, table := originalSeries(t, name, report)
		text, got := timelineRun(t, report, trace, append(args, "--legacy")...)
		if len(got) != len(want) {
			t.Errorf("%s -%s: %d series, want %d", trace, report, len(got), len(want))
		}
		for file, data := range want {
			compared++
			if got[file] != data {
				t.Errorf("%s -%s: %s is\n%swant\n%s", trace, report, file, got[file], data)
			}
		}
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, " "+strings.Join(strings.Fields(line), " ")+" ")
		}
		for _, row := range table {
			if strings.ContainsAny(row[len(row)-1], "0123456789") {
				rows++
				if want := " " + strings.Join(row, " ") + " "; !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
					t.Errorf("%s -%s: no row %s in\n%s", trace, report, want, text)
				}
			}
		}
	})
	if compared != 2*143 || rows != 2*52 {
		t.Errorf("%d series and %d rows of tables were compared", compared, rows)
	}
}

// Differences without --legacy: report, number of the series, and reason.
var timelineDifferences = map[string]string{
	"c-leaks a 3": parenthesis, "c-leaks a 4": parenthesis, "c-leaks a 5": parenthesis,
	"context a 15": parenthesis, "context a 16": parenthesis, "context a 17": parenthesis,
	"multi a 3": parenthesis, "multi a 4": parenthesis, "multi a 5": parenthesis,
	"toggle-0 a 3": "the peak of the rate does not count the call behind the slice, so it is another one",
	"toggle-0 a 4": parenthesis, "toggle-0 a 5": parenthesis,
	"c-leaks l 18": "the median of 16 sizes is the mean of the eighth and the ninth",
	"context t 3":  theirs, "context t 4": theirs, "context t 5": theirs, "context t 6": theirs,
}

const (
	parenthesis = "the heading ends with a parenthesis"
	theirs      = "the series has the name of the context, and a block counts in the contexts in which it was allocated"
)

// Without --legacy, exactly the listed series differ. Their numbers are checked in package
// usage. The slice of the original is 200 ms.
func TestTimelineDifferences(t *testing.T) {
	seen := map[string]bool{}
	timelineCases(func(name, report, trace string, args []string) {
		want, _ := originalSeries(t, name, report)
		if report == "a" {
			args = append(args, "-S", "200")
		}
		_, got := timelineRun(t, report, trace, args...)
		if len(got) != len(want) {
			t.Errorf("%s -%s: %d series, want %d", trace, report, len(got), len(want))
		}
		for n := range len(want) {
			key := fmt.Sprint(name, " ", report, " ", n)
			reason := timelineDifferences[key]
			same := got[fmt.Sprintf("%s_%d.dat", timelineReports[report], n)] == want[fmt.Sprintf("timeline_%d.dat", n)]
			seen[key] = true
			if same != (reason == "") {
				t.Errorf("%s from %s: equal: %v; the reason to differ is %q", key, trace, same, reason)
			}
		}
	})
	for key := range timelineDifferences {
		if !seen[key] {
			t.Errorf("%s does not exist", key)
		}
	}
}
