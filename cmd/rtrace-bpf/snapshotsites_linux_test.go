package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/topview"
	"rtrace-bpf/trace"
)

// siteAmounts is the figures of a call site.
type siteAmounts struct{ Live, Allocated, Freed topAmount }

func (a *topAmount) add(size uint64) { a.Blocks, a.Bytes = a.Blocks+1, a.Bytes+size }
func (a *topAmount) sub(size uint64) { a.Blocks, a.Bytes = a.Blocks-1, a.Bytes-size }

// sorted brings figures into an order that does not depend on where they come from.
func sorted(all []siteAmounts) []siteAmounts {
	slices.SortFunc(all, func(a, b siteAmounts) int { return slices.Compare(a.words(), b.words()) })
	return all
}

func (s siteAmounts) words() []uint64 {
	return []uint64{s.Allocated.Blocks, s.Allocated.Bytes, s.Freed.Blocks, s.Freed.Bytes, s.Live.Blocks, s.Live.Bytes}
}

// added adds up the calls of a trace of one process by stack, without the engine.
func added(records []*trace.Record) (all []siteAmounts) {
	type block struct {
		size uint64
		site *siteAmounts
	}
	sites, blocks := map[string]*siteAmounts{}, map[uint64]block{}
	free := func(id uint64) {
		if b, ok := blocks[id]; ok {
			b.site.Freed.add(b.size)
			b.site.Live.sub(b.size)
			delete(blocks, id)
		}
	}
	for _, r := range records {
		c := &r.Call
		if r.Kind != trace.KindCall {
			continue
		}
		switch c.Op {
		case trace.OpFree:
			free(c.ID)
			continue
		case trace.OpMove:
			free(c.OldID)
		}
		key := fmt.Sprint(c.Stack.Frames, c.Stack.End, c.Stack.Reason)
		if sites[key] == nil {
			sites[key] = new(siteAmounts)
		}
		blocks[c.ID] = block{c.Size, sites[key]}
		sites[key].Allocated.add(c.Size)
		sites[key].Live.add(c.Size)
	}
	for _, s := range sites {
		all = append(all, *s)
	}
	return sorted(all)
}

// summedUp returns what the engine makes of a trace.
func summedUp(records []*trace.Record) (all []siteAmounts) {
	e := aggregate.New()
	for _, r := range records {
		e.Add(r)
	}
	for _, s := range e.State().Sites {
		all = append(all, siteAmounts{topAmount(s.Live), topAmount(s.Allocated), topAmount(s.Freed)})
	}
	return sorted(all)
}

// rowsOf returns the rows of a line of JSON.
func rowsOf(t *testing.T, x *topLine) (all []siteAmounts) {
	t.Helper()
	for _, row := range x.Rows {
		all = append(all, siteAmounts{row.Live, row.Allocated, row.Freed})
	}
	if x.OtherRows != 0 {
		t.Errorf("%d rows are left out", x.OtherRows)
	}
	return sorted(all)
}

// severalSpaces separates the columns of a table.
var severalSpaces = regexp.MustCompile(` {2,}`)

// tableRows returns the live bytes and blocks of the rows of the last table that top --batch has
// printed.
func tableRows(t *testing.T, text string) (all []string) {
	t.Helper()
	heading := strings.LastIndex(text, "*live  blocks")
	if heading < 0 {
		t.Fatalf("no table in:\n%s", text)
	}
	for _, line := range strings.Split(strings.TrimSpace(text[heading:]), "\n")[1:] {
		cells := severalSpaces.Split(strings.TrimSpace(line), 3)
		if len(cells) < 3 {
			t.Fatalf("row %q in:\n%s", line, text)
		}
		all = append(all, cells[0]+", "+cells[1])
	}
	slices.Sort(all)
	return all
}

// tableRowsOf returns what tableRows returns for these figures.
func tableRowsOf(sites []siteAmounts) (all []string) {
	for _, s := range sites {
		all = append(all, fmt.Sprintf("%s, %d", topview.Bytes(s.Live.Bytes), s.Live.Blocks))
	}
	slices.Sort(all)
	return all
}

// A trace and the snapshots of the same recording, and top next to it, have the same figures
// for each call site, digit for digit. The tables of top --batch have the same live amounts. The programs have threads, forks and reallocs.
func TestOneEngine(t *testing.T) {
	for _, test := range []struct {
		program string
		args    []string
		format  string
		flags   []string
		gates   int
	}{
		{"alloc", []string{"4", "200"}, "sprtrace", nil, 1},
		{"alloc", []string{"8", "50"}, "jsonl", nil, 1},
		{"family", []string{"DIR", "fork"}, "sprtrace", []string{"-f"}, 1},
		{"family", []string{"DIR", "threads"}, "jsonl", []string{"-f"}, 1},
	} {
		t.Run(fmt.Sprint(test.program, test.args), func(t *testing.T) {
			if test.args[0] == "DIR" {
				test.args[0] = t.TempDir()
			}
			child := waiting(t, test.program, test.args...)
			pid := fmt.Sprint(child.PID)
			flags := slices.Concat([]string{"-p", pid}, test.flags, ample)
			r := startOn(t, append(flags, "--format", test.format, "--snapshot", "1h", "--snapshot-format", "json")...)
			var top, batch *running
			if test.flags == nil { // two cannot hold the same new process
				top = startTop(t, append(flags, "--json", "--interval", "1h")...)
				batch = startTop(t, append(flags, "--batch", "--interval", "1h", "--rows", "1000")...)
			}
			for range test.gates {
				child.Go()
			}
			child.Succeed()
			r.ends(cli.OK)
			paths, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*.snapshot-0001.json"))
			if err != nil || len(paths) == 0 || (len(test.flags) > 0) != (len(paths) > 1) {
				t.Fatalf("snapshots %v, %v", paths, err)
			}
			var all []siteAmounts
			for _, path := range paths {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				records := load(t, path[:len(path)-len(".snapshot-0001.json")])
				want := added(records)
				if d := cmp.Diff(want, summedUp(records)); d != "" {
					t.Errorf("%s: the engine and the calls in the trace (-want +got):\n%s", path, d)
				}
				if d := cmp.Diff(want, rowsOf(t, &topLines(t, text)[0])); d != "" {
					t.Errorf("%s: the snapshot and the calls in the trace (-want +got):\n%s", path, d)
				}
				all = append(all, want...)
			}
			if top != nil {
				top.ends(cli.OK)
				lines := topLines(t, top.Output())
				if d := cmp.Diff(sorted(all), rowsOf(t, &lines[len(lines)-1])); d != "" {
					t.Errorf("top and the calls in the traces (-want +got):\n%s", d)
				}
			}
			if batch != nil {
				batch.ends(cli.OK)
				if d := cmp.Diff(tableRowsOf(all), tableRows(t, string(batch.Output()))); d != "" {
					t.Errorf("top --batch and the calls in the traces (-want +got):\n%s", d)
				}
			}
			blocks := uint64(0)
			for _, s := range all {
				blocks += s.Allocated.Blocks
			}
			t.Logf("%d processes, %d call sites, %d blocks", len(paths), len(all), blocks)
			if len(all) < 3 || blocks < 100 {
				t.Errorf("only %d call sites and %d blocks", len(all), blocks)
			}
		})
	}
}
