package tracer

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// The growth of the heap agrees, thread by thread and call by call, with what strace
// prints for the same process at the same time, without what the program itself
// requested.
func TestHeapGrowthAsStraceSeesIt(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, heapGrowthAsStraceSeesIt)
}

func heapGrowthAsStraceSeesIt(t *testing.T, build testutil.Builder) {
	for _, way := range ways(t) {
		t.Run(way.name, func(t *testing.T) {
			child := testutil.Spawn(t, build(t, "heapgrow"))
			child.Ready()
			maps, err := proc.Maps(child.PID)
			if err != nil {
				t.Fatal(err)
			}
			log := straced(t, child.PID, "brk,mmap,?mmap2,mprotect,mremap")
			r := attachTo(t, child.PID, func(o *plan.Options) {
				way.set(o)
				o.HeapGrowth = true
			})
			child.Go()
			report := child.Report()
			records := r.end()
			r.whole()
			compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
			insideHeap(t, records)

			atAttach, got := map[string]int{}, map[int][]process.Extent{}
			began := records[0].Time
			for _, rec := range ofKind(records, trace.KindHeapGrow) {
				x := process.Extent{Start: rec.HeapGrow.Address, End: rec.HeapGrow.Address + rec.HeapGrow.Size}
				if rec.TID == 0 && rec.Time == began {
					atAttach[fmt.Sprintf("%#x", x)]++
				} else {
					got[int(rec.TID)] = append(got[int(rec.TID)], x)
				}
			}
			if want := heapsByShape(maps, r.tracer.plan.Target.Machine.ArenaHeap); fmt.Sprint(atAttach) != fmt.Sprint(want) {
				t.Errorf("heaps at the start: %v, want %v, of the mappings\n%v", atAttach, want, maps)
			}
			if len(report.Maps) != 8 {
				t.Fatalf("the program reports %d own mappings, want 8", len(report.Maps))
			}
			want := grownByStrace(t, log(), maps, report.Maps)
			if len(want) != 4 || len(want[report.TIDs[0]]) < 30 {
				t.Fatalf("strace saw %d threads grow the heap, the first one %d times", len(want), len(want[report.TIDs[0]]))
			}
			for tid, w := range want {
				if !slices.Equal(got[tid], w) {
					t.Errorf("thread %d: %s", tid, firstDifference(got[tid], w))
				}
				delete(got, tid)
			}
			if len(got) != 0 {
				t.Errorf("growth in other threads: %#x", got)
			}
		})
	}
}

func firstDifference(got, want []process.Extent) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	at := func(all []process.Extent) string {
		if i < len(all) {
			return fmt.Sprintf("%#x", all[i])
		}
		return "nothing"
	}
	return fmt.Sprintf("%d growths, want %d; the %dth is %s, want %s", len(got), len(want), i, at(got), at(want))
}

// heapsByShape finds heaps in the text of the mappings alone: an arena's heap begins at a
// possible address and ends within its size, and the part that is not open yet is
// reserved after it.
func heapsByShape(maps []proc.Map, arenaHeap uint64) map[string]int {
	all := map[string]int{}
	for i, m := range maps[:len(maps)-1] {
		rest := maps[i+1]
		arena := m.Path == "" && m.Perms == proc.Read|proc.Write && m.Start%arenaHeap == 0 && m.End <= m.Start+arenaHeap &&
			rest.Start == m.End && rest.Perms == 0 && rest.End >= m.Start+arenaHeap
		if m.Path == "[heap]" || arena {
			all[fmt.Sprintf("%#x", process.Extent{Start: m.Start, End: m.End})]++
		}
	}
	return all
}

// straced starts strace for the calls of a process. The returned function waits for the
// end of both and returns strace's output.
func straced(t *testing.T, pid int, calls string) func() []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "strace")
	cmd := exec.Command(installed(t, "strace"), "-f", "-e", "trace="+calls, "-e", "signal=none", "-o", path, "-p", strconv.Itoa(pid))
	messages, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	child := testutil.Start(t, cmd)
	lines := bufio.NewScanner(messages)
	if !lines.Scan() || !strings.Contains(lines.Text(), " attached") {
		t.Fatalf("strace: %s", lines.Text())
	}
	return func() []byte {
		child.Succeed()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// straceLine matches thread, call, arguments and result.
var straceLine = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (0x[0-9a-f]+|0)$`)

// grownByStrace returns by how much each thread made memory accessible, without what the
// program itself requested.
func grownByStrace(t *testing.T, log []byte, maps []proc.Map, own []testutil.Range) map[int][]process.Extent {
	t.Helper()
	end := uint64(0) // end of the heap
	for _, m := range maps {
		if m.Path == "[heap]" {
			end = m.End
		}
	}
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("strace: %v", err)
		}
		return n
	}
	grown := map[int][]process.Extent{}
	for line := range bytes.Lines(log) {
		m := straceLine.FindStringSubmatch(strings.TrimSuffix(string(line), "\n"))
		if m == nil {
			if bytes.Contains(line, []byte("unfinished")) {
				t.Fatalf("strace: two threads at once: %s", line)
			}
			continue // the call failed, or the line is not a call
		}
		args, result := strings.Split(m[3], ", "), number(m[4])
		writable := len(args) > 2 && strings.Contains(args[2], "PROT_WRITE")
		var x process.Extent
		switch m[2] {
		case "brk":
			x, end = process.Extent{Start: end, End: result}, result
		case "mmap", "mmap2": // the latter in 32-bit programs
			if writable && strings.Contains(args[3], "MAP_ANONYMOUS") {
				x = process.Extent{Start: result, End: result + (number(args[1])+4095)&^4095}
			}
		case "mprotect":
			if writable {
				x = process.Extent{Start: number(args[0]), End: number(args[0]) + number(args[1])}
			}
		case "mremap":
			was := process.Extent{Start: number(args[0]), End: number(args[0]) + number(args[1])}
			x = process.Extent{Start: result, End: result + number(args[2])}
			if result == was.Start {
				x.Start = was.End
			}
		}
		isOwn := func(r testutil.Range) bool { return r.Start == x.Start && r.Start+r.Size == x.End }
		if x.End <= x.Start || slices.ContainsFunc(own, isOwn) {
			continue
		}
		tid, _ := strconv.Atoi(m[1])
		grown[tid] = append(grown[tid], x)
	}
	return grown
}
