package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// viewFigures are the figures of a trace's memory that every view prints.
type viewFigures struct {
	Calls                                     usage.Calls
	Allocated, Temporary, Live, Unknown, Peak amount
	Unmatched                                 uint64
}

// views returns the figures of a trace, by command.
func views(t *testing.T, file string) map[string]viewFigures {
	t.Helper()
	out := map[string]viewFigures{}
	info := objectOf[report](t, "info", "--json", file)
	alone := uint64(1) // unmatched frees are the sum for all resources
	if len(info.Resources) > 1 {
		alone = 0
	}
	for _, r := range info.Resources {
		if r.Type == memoryType || r.ID == 0 {
			out["info"] = viewFigures{r.Calls, r.Allocated, r.Temporary, r.Live, r.Unknown, r.Peak, alone * info.Unmatched}
		}
	}
	for _, key := range []string{"function", "stack", "thread"} {
		top := objectOf[topObject](t, "top", "--json", "--by", key, file)
		out["top by "+key] = viewFigures{top.Calls, top.Total.Allocated, top.Total.Temporary, top.Total.Live, top.Total.Unknown, top.Total.Peak, alone * top.Unmatched}
	}
	// Figures that leaks does not print are taken from info.
	leaks := leaksOf(t, file)
	f := out["info"]
	f.Live, f.Unknown, f.Unmatched = amount{leaks.Blocks, leaks.Bytes}, leaks.Unknown, alone*leaks.Unmatched
	out["leaks"] = f
	unknown := leaksOf(t, file, "--unknown")
	f.Unknown = amount{unknown.Blocks, unknown.Bytes}
	out["leaks --unknown"] = f
	for _, r := range pageOf(t, file).Resources {
		if r.Type == memoryType {
			u := r.Total
			out["report"] = viewFigures{
				r.Calls, amount{u[4], u[5]}, amount{u[6], u[7]}, amount{u[0], u[1]}, amount{u[8], u[9]}, amount{u[2], u[3]}, out["info"].Unmatched,
			}
		}
	}
	return out
}

// agree checks that all views of a trace have the same figures, and returns these.
func agree(t *testing.T, file string) viewFigures {
	t.Helper()
	all := views(t, file)
	want, ok := all["info"]
	if !ok {
		t.Errorf("%s: info says nothing of memory", file)
	}
	for name, got := range all {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s (-info +%s):\n%s", file, name, name, d)
		}
	}
	return want
}

// kindOfTrace describes random traces.
type kindOfTrace struct {
	threads int
	clean   bool // each free is of a live block, and no allocation is at the address of one
	gaps    bool
}

// randomTrace writes a trace of random calls as JSON lines.
func randomTrace(t *testing.T, seed uint64, k kindOfTrace) string {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	path := filepath.Join(t.TempDir(), "random.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := jsonl.New(f)
	now := int64(5e12)
	put := func(r *trace.Record) {
		r.PID = 7
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	put(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, WallTime: 17e17, ClockTime: now}})
	put(&trace.Record{Kind: trace.KindProcess, Process: trace.Process{Name: "random", Depth: 4, WallTime: 17e17}})
	put(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: memoryType, Desc: "memory allocation in bytes"}})
	live := map[uint64]bool{}
	for i := range 3000 {
		now += int64(rnd.ExpFloat64() * 3e6)
		r := &trace.Record{Kind: trace.KindCall, Time: now, TID: 7 + int32(rnd.IntN(k.threads))}
		c := &r.Call
		c.Seq, c.Resource, c.ID = uint64(i+1), 1, 0x1000+16*rnd.Uint64N(80)
		used := func(id uint64) bool { return live[id] }
		switch n := rnd.IntN(10); {
		case n < 4:
			c.Op, c.Function = trace.OpFree, "free"
			if n == 0 {
				c.Function = "realloc" // to size 0
			}
			if k.clean && !used(c.ID) {
				continue
			}
			delete(live, c.ID)
		case n < 6:
			c.Op, c.Function, c.OldID, c.EntryTime = trace.OpMove, "realloc", 0x1000+16*rnd.Uint64N(80), now
			if k.clean && (!used(c.OldID) || c.ID != c.OldID && used(c.ID)) {
				continue
			}
			delete(live, c.OldID)
			live[c.ID] = true
		default:
			c.Op, c.Function = trace.OpAlloc, "malloc"
			if k.clean && used(c.ID) {
				continue
			}
			live[c.ID] = true
		}
		if c.Op != trace.OpFree {
			c.Size = rnd.Uint64N(1 << rnd.IntN(14))
			c.Stack = trace.Stack{Frames: []uint64{0x401000 + 16*rnd.Uint64N(5), 0x402000}, End: trace.StackComplete}
		}
		put(r)
		if k.gaps && i%1000 == 980 {
			put(&trace.Record{Kind: trace.KindLost, Time: now, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused, Since: now - 5e8}})
			put(&trace.Record{Kind: trace.KindLost, Time: now, Lost: trace.Lost{Count: 3, Reason: "ring full", Since: now - 10}})
		}
	}
	put(&trace.Record{Kind: trace.KindEnd, Time: now})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestViewsAgree: info, top, leaks and report print the same figures for a trace, whatever
// its format.
func TestViewsAgree(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    kindOfTrace
		formats []string
	}{
		{"one thread", kindOfTrace{threads: 1, clean: true}, []string{"sprtrace", "text", "mtrc", "swap", "nettrace"}},
		{"threads", kindOfTrace{threads: 3, clean: true}, []string{"sprtrace", "mtrc", "nettrace"}},
		{"lost frees", kindOfTrace{threads: 3}, []string{"sprtrace", "nettrace"}},
		{"lost frees of one thread", kindOfTrace{threads: 1}, []string{"text"}},
		{"gaps", kindOfTrace{threads: 3, gaps: true}, []string{"sprtrace", "nettrace"}},
		{"gaps in one thread", kindOfTrace{threads: 1, clean: true, gaps: true}, []string{"text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := randomTrace(t, 3, tt.kind)
			want := agree(t, file)
			if want.Calls.Reallocs == 0 || want.Temporary.Blocks == 0 || want.Live.Blocks == 0 || tt.kind.gaps != (want.Unknown.Blocks > 0) {
				t.Errorf("nothing to compare: %+v", want)
			}
			for _, format := range tt.formats {
				out := filepath.Join(t.TempDir(), "out."+format)
				if _, errOut, code := runRtrace("", "convert", "-f", format, "-o", out, file); code != cli.OK && code != cli.Incomplete {
					t.Fatalf("convert -f %s: exit code %d: %s", format, code, errOut)
				}
				if d := cmp.Diff(want, agree(t, out)); d != "" {
					t.Errorf("%s (-jsonl +%s):\n%s", format, format, d)
				}
			}
		})
	}
}

// TestViewsAgreeOnCorpus is TestViewsAgree for the traces of other programs.
func TestViewsAgreeOnCorpus(t *testing.T) {
	reallocs := uint64(0)
	for _, file := range traceFiles(t) {
		text, _, _ := runRtrace("", "info", "--json", file)
		var info report
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range info.Resources {
			if r.Type == memoryType || r.ID == 0 {
				n++
			}
		}
		if n != 1 || strings.Contains(filepath.Base(file), "fork") {
			continue // of no memory, or of several processes
		}
		reallocs += agree(t, file).Calls.Reallocs
	}
	if reallocs < 50 {
		t.Error(fmt.Sprint("only ", reallocs, " reallocs"))
	}
}
