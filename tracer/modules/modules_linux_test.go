package modules

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// Rows of different modules for one function need the same arguments, because one probe reads
// them, and every resource of a module is declared.
func TestTable(t *testing.T) {
	for _, g := range groups(All()) {
		for _, r := range g.rows {
			if r.result != g.rows[0].result || !strings.HasPrefix(r.args+g.rows[0].args, g.rows[0].args) && r.args != "" {
				t.Errorf("%s: arguments %q of module %s, %q of %s", g.symbol, r.args, r.module.Name, g.rows[0].args, g.rows[0].module.Name)
			}
			for _, f := range r.frees {
				if !slices.ContainsFunc(r.module.Resources, func(x trace.Resource) bool { return x.Type == f.resource }) {
					t.Errorf("%s frees %q, which module %s does not declare", g.symbol, f.resource, r.module.Name)
				}
			}
			texts := strings.Count(r.args, "s") + strings.Count(r.args, "B")
			if texts > functions.MaxTexts || r.wrote > functions.MaxOut || r.out > len(r.args) {
				t.Errorf("%s of module %s cannot be recorded", g.symbol, r.module.Name)
			}
		}
	}
	number := 0
	for i, f := range Functions(All(), true) {
		if number = f.Module; number != i+1 || !f.Stack {
			t.Errorf("function %d is %+v", i, f)
		}
	}
}

func TestSelect(t *testing.T) {
	got, err := Select([]string{"lock", "file", "lock"})
	if err != nil || len(got) != 2 || got[0] != &lock || got[1] != &file {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Select([]string{"file", ""}); err == nil {
		t.Error("a module without a name is selected")
	}
}

// Cutting out the middle of regions leaves their ends.
func TestRegions(t *testing.T) {
	var rs regions
	rs.put(region{0x5000, 0x9000, 1})
	rs.put(region{0x1000, 0x2000, 2})
	rs.put(region{0x2000, 0x4000, 3})
	if got, want := fmt.Sprint(rs.keys(0x1800, 0x5001)), fmt.Sprint([]key{{2, 0x1000}, {3, 0x2000}, {1, 0x5000}}); got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
	if got, want := rs.cut(0x3000, 0x6000), (regions{{0x2000, 0x3000, 3}, {0x6000, 0x9000, 1}}); !slices.Equal(got, want) {
		t.Errorf("left %x, want %x", got, want)
	}
	if want := (regions{{0x1000, 0x2000, 2}, {0x2000, 0x3000, 3}, {0x6000, 0x9000, 1}}); !slices.Equal(rs, want) {
		t.Errorf("%x, want %x", rs, want)
	}
	if left := rs.cut(0x3000, 0x6000); left != nil || len(rs.keys(0x4000, 0x4000)) != 0 {
		t.Errorf("%x of nothing", left)
	}
}

// The hash of a name equals sp-rtrace's (corpus sp-rtrace, multi.rtrace). A name with the hash of
// another one gets the next number.
func TestObjectID(t *testing.T) {
	s := &shared{objects: map[string]uint64{"/other": 0x95ef6eef}}
	if id, there := s.objectID("/rtrtest"); id != 0x95ef6ef0 || there {
		t.Errorf("%#x, %v", id, there)
	}
	if id, there := s.objectID("/rtrtest"); id != 0x95ef6ef0 || !there {
		t.Errorf("%#x, %v again", id, there)
	}
}

// Descriptors in control messages are found, whatever else the messages contain and wherever they
// are truncated.
func TestPassed(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		message := func(kind uint32, fds ...uint32) []byte {
			word := 8
			if narrow {
				word = 4
			}
			b := binary.NativeEndian.AppendUint32(nil, uint32(word+8+4*len(fds)))
			b = append(b, make([]byte, word-4)...)
			b = binary.NativeEndian.AppendUint32(b, 1)
			b = binary.NativeEndian.AppendUint32(b, kind)
			for _, fd := range fds {
				b = binary.NativeEndian.AppendUint32(b, fd)
			}
			return append(b, make([]byte, -len(b)&(word-1))...)
		}
		whole := slices.Concat(message(2, 77), message(1, 5, 6, 7), message(1, 8), make([]byte, 32))
		if got := passed(whole, narrow); !slices.Equal(got, []uint32{5, 6, 7, 8}) {
			t.Errorf("%v", got)
		}
		for n := range whole {
			_ = passed(whole[:n], narrow)
			damaged := slices.Clone(whole)
			damaged[n] ^= 0xff
			_ = passed(damaged, narrow)
		}
	}
}

func TestKind(t *testing.T) {
	for link, want := range map[string]string{
		"socket:[123]": "socket", "pipe:[1]": "pipe", "anon_inode:[eventpoll]": "epoll", "anon_inode:inotify": "inotify",
		"anon_inode:[eventfd]": "eventfd", "anon_inode:[signalfd]": "signalfd", "anon_inode:[timerfd]": "timerfd",
		"anon_inode:[io_uring]": "(unknown)", "/dev/ptmx": "pty", "/dev/pts/3": "pty", "/a: b": "file", "/memfd:x (deleted)": "file",
	} {
		if got := Kind(link); got != want {
			t.Errorf("%s is %q, want %q", link, got, want)
		}
	}
}

// A descriptor that was open before the trace is looked up once. One that the process opens
// unseen counts as closed, because the process is ahead of its events. An exec closes some.
func TestDescriptors(t *testing.T) {
	now := map[int]string{3: "socket", 4: "pipe", 5: "file", 6: "file"}
	r := NewRecorder(nil, 1, Process{
		Open: map[uint32]string{3: "socket", 4: "pipe", 7: "file"}, Kind: func(fd int) string { return now[fd] },
	})
	check := func(fd uint32, kind string, closed bool) {
		t.Helper()
		if x := r.fds.get(fd); x.describe() != kind || x.closed != closed {
			t.Errorf("descriptor %d is %q, closed: %v; want %q, %v", fd, x.describe(), x.closed, kind, closed)
		}
	}
	check(3, "socket", false)
	check(5, "file", true)
	check(7, "file", false)
	check(8, "(closed)", true)
	r.fds.close(4)
	check(4, "(closed)", true)
	r.fds.open(5, "eventfd")
	check(5, "eventfd", false)
	r.Executed()
	check(3, "socket", false)
	check(7, "(closed)", true)
}

// A descriptor that a thread is closing and that another thread has opened again is freed first.
// If closing fails, it is not freed.
func TestOvertaken(t *testing.T) {
	const closes, opens = 1, 2
	var m Module
	m.Resources = file.Resources
	m.rows = []row{
		{symbols: []string{"close"}, args: "d", result: 'd', ok: zero, frees: []freeing{{resource: fd, id: fdArg(0)}}},
		{symbols: []string{"open"}, args: "d", result: 'd', ok: notMinusOne, does: []step{opensAny}},
	}
	r := NewRecorder([]*Module{&m}, 1, Process{PID: os.Getpid()})
	all := Functions([]*Module{&m}, false)
	enter := func(tid uint32, function int, word uint64) {
		e := functions.Event{Kind: functions.Entered, TID: tid, Function: &all[function-1], Slot: 0x100}
		e.Words()[0] = word
		if acts := r.Enter(&e, Caller{}); len(acts) != 0 {
			t.Fatalf("%+v at the beginning", acts)
		}
	}
	leave := func(tid uint32, function int, argument, result uint64) string {
		entry := functions.Event{Kind: functions.Entered, TID: tid, Function: &all[function-1], Slot: 0x100}
		entry.Words()[0] = argument
		e := functions.Event{Kind: functions.Left, TID: tid, Function: &all[function-1], Slot: 0x100, Entry: &entry}
		e.Words()[0] = result
		var list []string
		for _, a := range r.Leave(&e) {
			list = append(list, fmt.Sprintf("%s %s %d", a.Op, a.Function, a.ID))
		}
		return strings.Join(list, ", ")
	}
	enter(1, closes, 7)
	enter(2, opens, 0)
	for i, step := range []struct{ got, want string }{
		{leave(2, opens, 0, 7), "free close 7, alloc open 7"},
		{leave(1, closes, 7, 0), ""},
		{leave(1, closes, 7, 0), ""}, // of a call from before the trace
	} {
		if step.got != step.want {
			t.Errorf("step %d: %q, want %q", i, step.got, step.want)
		}
	}
	enter(1, closes, 9)
	if got := leave(1, closes, 9, ^uint64(0)); got != "" {
		t.Errorf("a close that failed is %q", got)
	}
	enter(1, closes, 9)
	r.Forget(1)
	enter(2, opens, 0)
	if got := leave(2, opens, 0, 9); got != "alloc open 9" || len(r.calls)+len(r.ending) != 0 {
		t.Errorf("%q, %d calls and %d ends are left", got, len(r.calls), len(r.ending))
	}
}

func opensAny(c *call) { c.alloc(fd, fdResult(c), 1) }
