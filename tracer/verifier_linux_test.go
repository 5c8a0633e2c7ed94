package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/unwind"
	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
	"rtrace-bpf/tracer/tables"
)

// Agreement decides which stacks count as the same, and whether enough is known to count
// them at all.
func TestAgreement(t *testing.T) {
	const (
		complete  = object.ProbeStackEndSTACK_COMPLETE
		truncated = object.ProbeStackEndSTACK_TRUNCATED
		noRule    = object.ProbeStackEndSTACK_NO_RULE
		badFrame  = object.ProbeStackEndSTACK_BAD_FRAME
		unmapped  = object.ProbeStackEndSTACK_UNMAPPED
	)
	for name, test := range map[string]struct {
		got         []uint64
		end         object.ProbeStackEnd
		want        []uint64
		wantEnd     reference.End
		agree, sure bool
	}{
		"the same":                      {[]uint64{1, 2, 3}, complete, []uint64{1, 2, 3}, reference.Complete, true, true},
		"cut alike":                     {[]uint64{1, 2}, truncated, []uint64{1, 2}, reference.Truncated, true, true},
		"another frame":                 {[]uint64{1, 9, 3}, complete, []uint64{1, 2, 3}, reference.Complete, false, true},
		"another last frame":            {[]uint64{1, 2, 9}, complete, []uint64{1, 2, 3}, reference.Complete, false, true},
		"given up":                      {[]uint64{1, 2}, noRule, []uint64{1, 2, 3}, reference.Complete, true, true},
		"given up at the end":           {[]uint64{1, 2, 3}, badFrame, []uint64{1, 2, 3}, reference.Complete, true, true},
		"given up beyond a wrong frame": {[]uint64{1, 9}, unmapped, []uint64{1, 2, 3}, reference.Complete, false, true},
		"marked complete, is not":       {[]uint64{1, 2}, complete, []uint64{1, 2, 3}, reference.Complete, false, true},
		"marked truncated, is not":      {[]uint64{1, 2}, truncated, []uint64{1, 2, 3}, reference.Truncated, false, true},
		"frames behind the end":         {[]uint64{1, 2, 3}, complete, []uint64{1, 2}, reference.Complete, false, true},
		"frames behind the end, failed": {[]uint64{1, 2, 3}, noRule, []uint64{1, 2}, reference.Complete, false, true},
		"the copy ends":                 {[]uint64{1, 2, 3}, complete, []uint64{1, 2}, reference.Unreadable, true, false},
		"the copy ends, as the other":   {[]uint64{1, 2}, complete, []uint64{1, 2}, reference.Unreadable, true, false},
		"wrong before the copy ends":    {[]uint64{1, 9, 3}, complete, []uint64{1, 2}, reference.Unreadable, false, true},
		"a return probe's stub":         {[]uint64{1, 2, 3}, complete, []uint64{1, 7777}, reference.Unmapped, false, true},
		"up to a return probe's stub":   {[]uint64{1, 2, 3}, complete, []uint64{1, 2}, reference.Unmapped, true, false},
		"a stub behind all of both":     {[]uint64{1, 2}, complete, []uint64{1, 2}, reference.Unmapped, true, false},
		"no rule for both":              {[]uint64{1, 2}, noRule, []uint64{1, 2}, reference.NoRule, true, true},
		"no rule, but the other":        {[]uint64{1, 2, 3}, complete, []uint64{1, 2}, reference.NoRule, true, false},
		"wrong before there is no rule": {[]uint64{9, 2}, complete, []uint64{1, 2}, reference.NoRule, false, true},
	} {
		agree, sure := record.Agreement(&order.StackDef{Frames: test.got, End: test.end}, &reference.Stack{Frames: test.want, End: test.wantEnd})
		if agree != test.agree || sure != test.sure {
			t.Errorf("%s: agree %v, sure %v", name, agree, sure)
		}
	}
}

// A difference shows both stacks, frame by frame.
func TestDifference(t *testing.T) {
	got := record.Difference(
		&order.StackDef{Frames: []uint64{0x10, 0x20}, End: object.ProbeStackEndSTACK_NO_RULE},
		&reference.Stack{Frames: []uint64{0x10, 0x21, 0x30}, End: reference.Complete},
	)
	want := "stack differs: programs failed no-rule, reference complete\n" +
		"   0  0x10              0x10\n" +
		"   1  0x20              0x21\n" +
		"   2  -                 0x30"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// warnings collects the texts given to Options.Warn.
type warnings struct {
	sync.Mutex
	texts []string
}

// spoil changes the most used rules of a file by a word, where the BPF programs read
// them.
func (r *recording) spoil(path string) {
	r.t.Helper()
	k := r.tracer.kernel
	space := k.unwinding.follower.Space
	i := slices.IndexFunc(space.Code, func(p tables.Placed) bool { return p.Path == path })
	var rows *ebpf.Map
	if err := k.programs.Tables.Lookup(space.Code[i].Table.Slot, &rows); err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	uses, numbers := map[unwind.Rule]int{}, map[unwind.Rule]uint32{}
	for j := range rows.MaxEntries() {
		var row object.ProbeRow
		var rule unwind.Rule
		if err := errors.Join(rows.Lookup(j, &row), k.programs.Rules.Lookup(row.Rule, &rule)); err != nil {
			r.t.Fatal(err)
		}
		if rule.Kind() == unwind.SP {
			uses[rule]++
			numbers[rule] = row.Rule
		}
	}
	for range 3 {
		most := slices.MaxFunc(slices.Collect(maps.Keys(uses)), func(a, b unwind.Rule) int { return uses[a] - uses[b] })
		if err := k.programs.Rules.Put(numbers[most], most+1<<40); err != nil {
			r.t.Fatal(err)
		}
		delete(uses, most)
	}
}

// write is for Options.Warn.
func (w *warnings) write(format string, args ...any) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, fmt.Sprintf(format, args...))
}

// showsDifference reports whether a text shows a difference: a line with two different
// columns.
func showsDifference(text string) bool {
	lines := strings.Split(text, "\n")
	return strings.HasPrefix(lines[0], "stack differs: programs ") && slices.ContainsFunc(lines[1:], func(line string) bool {
		columns := strings.Fields(line)
		return len(columns) == 3 && columns[1] != columns[2]
	})
}

// Wrong rules in the kernel are found and counted, and the first differences are logged.
func TestVerifierFindsDifferences(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "stacks", testutil.OmitFramePointers)
	for _, way := range []plan.Unwind{plan.UnwindEH, plan.UnwindAuto} {
		t.Run(way.String(), func(t *testing.T) {
			var w warnings
			child := testutil.Spawn(t, program, testutil.StackLogPath(t), "30", "2")
			child.Ready()
			r := attachTo(t, child.PID, byTables(way, func(o *plan.Options) {
				o.VerifyUnwind, o.Warn = 1, w.write
			}))
			r.spoil(program)
			child.Go()
			child.Succeed()
			r.end()
			s := r.tracer.Stats()
			t.Logf("%d of %d differ", s.VerifyDiffers, s.Verified)
			if s.VerifyDiffers == 0 || s.VerifyDiffers > s.Verified {
				t.Errorf("%d of %d stacks differ", s.VerifyDiffers, s.Verified)
			}
			w.Lock()
			defer w.Unlock()
			if want := min(s.VerifyDiffers, record.MaxDifferences); uint64(len(w.texts)) != want {
				t.Errorf("%d texts, want %d", len(w.texts), want)
			}
			for _, text := range w.texts {
				if !showsDifference(text) {
					t.Errorf("no difference is to be seen in\n%s", text)
				}
			}
		})
	}
}
