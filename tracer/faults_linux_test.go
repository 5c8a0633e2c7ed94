package tracer

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/resident"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// growth makes a tracer record resident memory.
func growth(o *plan.Options) { o.Faults, o.NoMemory = true, true }

// needFaultEvents skips the test if the kernel is too old for the options: before Linux 6.1 its
// verifier refuses hash maps without preallocation to programs at perf events. Only arm64 needs
// these programs, and is supported from 6.1 on.
func needFaultEvents(t *testing.T, o *plan.Options) {
	t.Helper()
	if !o.Faults || !o.FaultEvents() {
		return
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if major < 6 || major == 6 && minor < 1 {
		t.Skipf("SKIPPED-KERNEL: programs at perf events need Linux 6.1, this is %d.%d", major, minor)
	}
}

// touched sums up the live bytes of a trace within a range of addresses: those whose stack has
// the function, and others.
func touched(records []*trace.Record, names func(uint64) string, function string, start, end uint64) (own, others uint64) {
	live := map[uint64]*trace.Call{}
	for _, rec := range ofKind(records, trace.KindCall) {
		if rec.Call.Op == trace.OpFree {
			delete(live, rec.Call.ID)
		} else {
			live[rec.Call.ID] = &rec.Call
		}
	}
	for _, c := range live {
		from, to := max(c.ID, start), min(c.ID+c.Size, end)
		if from >= to {
			continue
		}
		sum := &others
		for _, addr := range c.Stack.Frames {
			if name, _, _ := strings.Cut(names(addr), "("); name == function {
				sum = &own
				break
			}
		}
		*sum += to - from
	}
	return own, others
}

// What each function of a program has touched and is still resident is in the trace, page for
// page: written, read by the kernel, populated, locked, of a file, huge, moved, and touched again.
// Attributed and unattributed memory add up to the growth of RSS.
func TestGrowthOfFaults(t *testing.T) {
	testutil.NeedBPF(t)
	for name, change := range map[string]func(o *plan.Options){
		"best": func(*plan.Options) {},
		"oldest": func(o *plan.Options) {
			oldest(o)
			o.Buffer = plan.BufferRing
		},
		"events": func(o *plan.Options) { o.Testing.FaultEvents = true },
		"oldest, events": func(o *plan.Options) {
			oldest(o)
			o.Buffer, o.Testing.FaultEvents = plan.BufferRing, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			growthOfFaults(t, func(o *plan.Options) {
				growth(o)
				change(o)
			})
		})
	}
}

func growthOfFaults(t *testing.T, change func(o *plan.Options)) {
	var options plan.Options
	change(&options)
	needFaultEvents(t, &options)
	child := testutil.Spawn(t, testutil.Build(t, "faults"))
	child.Ready()
	before := rss(t, child.PID)
	r := attachTo(t, child.PID, change)
	child.Go()
	child.Ready()
	after := rss(t, child.PID)
	r.tracer.Stop()
	records := r.end()
	r.whole()
	child.Go()
	child.Succeed()

	names := resolved(records)
	for place, want := range child.Report().Leaks {
		var function string
		var start, end uint64
		if _, err := fmt.Sscanf(place, "%s %x %x", &function, &start, &end); err != nil {
			t.Fatal(place, err)
		}
		own, others := touched(records, names, function, start, end)
		if options.FaultEvents() && (function == "touch_and_fork" || function == "touch_again") {
			// Perf events do not show whether a page was there, so it may belong to either writer.
			own, others = own+others, 0
		}
		if own != want || others != 0 {
			t.Errorf("%s: %d bytes in the trace, and %d of others; %d by the program", function, own, others, want)
		}
	}
	known, _ := r.tracer.Residence()
	// A probe in the dynamic loader is a page of its own.
	if known.Start < before || known.Start > before+1<<16 || known.End != after {
		t.Errorf("RSS %d at the start and %d at the end, smaps has %d and %d", known.Start, known.End, before, after)
	}
	if sum := known.Sums.Before + known.Sums.Attributed + known.Sums.Unknown; sum != after {
		t.Errorf("pages of %d bytes, RSS is %d: %+v", sum, after, known)
	}
	if growth := after - before; known.Sums.Unknown*20 > growth {
		t.Errorf("%d of %d bytes are unattributed", known.Sums.Unknown, growth)
	}
}

func rss(t *testing.T, pid int) uint64 {
	t.Helper()
	usage, err := resident.Total(pid)
	if err != nil {
		t.Fatal(err)
	}
	return usage.Resident
}
