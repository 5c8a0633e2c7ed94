package nettrace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/trace"
)

// functions names addresses by their hundreds, and remembers what it observes.
type functions struct{ observed []string }

func (f *functions) Observe(r *trace.Record) {
	if r.Kind == trace.KindMapping || r.Kind == trace.KindUnmapping {
		f.observed = append(f.observed, fmt.Sprintf("%v %x", r.Kind, r.Mapping.Start))
	}
}

func (f *functions) Function(_ int32, addr uint64) string {
	if addr >= 0x7f0000000000 {
		return ""
	}
	return fmt.Sprintf("f%x", (addr-1)>>8)
}

func (f *functions) Bias(m *trace.Mapping) (uint64, bool) {
	return m.Start - 0x1230, m.Start < 0x7f0000000000
}

// call returns a call with a complete stack.
func call(pid int32, names []string, frames ...uint64) trace.Record {
	return trace.Record{Kind: trace.KindCall, Time: 2e9, PID: pid, Call: trace.Call{
		Op: trace.OpAlloc, Function: "malloc", ID: 16, Size: 100, Stack: trace.Stack{Frames: frames, Names: names, End: trace.StackComplete},
	}}
}

func mapping(kind trace.Kind, pid int32, start uint64, path string) trace.Record {
	return trace.Record{Kind: kind, Time: 1e9, PID: pid, Mapping: trace.Mapping{Start: start, End: start + 0x1000, Offset: 0x3000, Base: start - 0x3000, Path: path}}
}

func module(path, id string) trace.Record {
	return trace.Record{Kind: trace.KindModule, Time: 1e9, PID: pid, Module: trace.Module{Path: path, BuildID: id}}
}

func process(pid int32, name string) trace.Record {
	return trace.Record{Kind: trace.KindProcess, Time: 1e9, PID: pid, Process: trace.Process{Name: name}}
}

// What other readers get: processes with the name of their file, mappings after what is
// known about their files, and the functions of frames.
func TestSystem(t *testing.T) {
	victim, libc := uint64(0x55550000), uint64(0x7f0000001000)
	const elf = `{"type":"ELF","debug_link":"","build_id":"%s","p_vaddr":"0x%x","p_offset":"0x3000"}`
	tests := []struct {
		name    string
		records []trace.Record
		symbols nettrace.Symbols
		want    []string
	}{
		{"names from the stacks", []trace.Record{
			process(pid, "./victim --all"), module("/bin/victim", "abcd"), mapping(trace.KindMapping, pid, victim, "/bin/victim"),
			mapping(trace.KindMapping, pid, libc, "/lib/libc.so.6"),
			call(pid, []string{"inner() at a.c:2 (inlined by) make() at a.c:9", "main() from /bin/victim", "in ??"}, victim+0x10, victim+0x20, libc+0x30),
			call(pid, []string{"make() at a.c:10"}, victim+0x18),
		}, nil, []string{
			"metadata 2 " + fmt.Sprintf(elf, "abcd", 0x3000),
			"mapping 1 55550000-55551000 3000 /bin/victim 2",
			"mapping 3 7f0000001000-7f0000002000 3000 /lib/libc.so.6 0",
			"process 4711 victim",
			"symbol 1 5555000f-55550018 make", "symbol 1 5555001f-55550020 main",
		}},
		{"names from files", []trace.Record{
			process(pid, "victim"), module("/bin/victim", `x"`), mapping(trace.KindMapping, pid, victim, "/bin/victim"),
			call(pid, nil, victim+0x10, victim+0x100, victim+0x101, victim+0x102, libc+7),
		}, &functions{}, []string{
			"metadata 2 " + fmt.Sprintf(elf, "", 0x1230),
			"mapping 1 55550000-55551000 3000 /bin/victim 2",
			"process 4711 victim",
			"symbol 1 5555000f-55550100 f555500", "symbol 1 55550101-55550102 f555501",
		}},
		{"a program of another name", []trace.Record{
			process(pid, "nginx: worker process"), mapping(trace.KindMapping, pid, libc, "/lib/libc.so.6"), mapping(trace.KindMapping, pid, victim, "/usr/sbin/nginx"),
			call(pid, nil, victim+1),
		}, nil, []string{
			"mapping 1 7f0000001000-7f0000002000 3000 /lib/libc.so.6 0",
			"mapping 2 55550000-55551000 3000 /usr/sbin/nginx 0",
			"process 4711 nginx",
		}},
		{"mappings that go", []trace.Record{
			process(pid, "victim"), mapping(trace.KindMapping, pid, victim, "/bin/a.so"), call(pid, nil, victim+1),
			mapping(trace.KindUnmapping, pid, victim, "/bin/a.so"), mapping(trace.KindMapping, pid, victim, "/bin/b.so"), call(pid, nil, victim+0x201),
			{Kind: trace.KindExec, PID: pid, Exec: trace.Exec{Name: "other"}},
			mapping(trace.KindMapping, pid, victim, "/bin/other"), call(pid, nil, victim+0x301),
			{Kind: trace.KindExit, PID: pid, Exit: trace.Exit{Process: true}},
		}, &functions{}, []string{
			"mapping 1 55550000-55551000 3000 /bin/a.so 0", "process 4711 victim", "symbol 1 55550000-55550001 f555500",
			"mapping 3 55550000-55551000 3000 /bin/b.so 0", "symbol 3 55550200-55550201 f555502",
			"mapping 5 55550000-55551000 3000 /bin/other 0", "process 4711 other", "symbol 5 55550300-55550301 f555503", "exit",
		}},
		{"code that a runtime made", []trace.Record{
			process(pid, "app"), mapping(trace.KindMapping, pid, victim, "/bin/app"), call(pid, nil, 0x9010, 0x9040, 0xa000, 0xa008, victim+1),
			{Kind: trace.KindFunction, PID: pid, Function: trace.Function{Name: "B()", Start: 0xa000, End: 0xa008}},
			{Kind: trace.KindFunction, PID: pid, Function: trace.Function{Name: "A()", Start: 0x9000, End: 0x9020}},
		}, nil, []string{
			"mapping 1 55550000-55551000 3000 /bin/app 0", "process 4711 app",
			"mapping 2 9000-9020 0 /memfd:doublemapper 0", "symbol 2 9000-9020 A()",
			"mapping 4 a000-a008 0 /memfd:doublemapper 0", "symbol 4 a000-a008 B()",
		}},
		{"code in a mapped memfd, whose names come when it was mapped anew", []trace.Record{
			process(pid, "app"), mapping(trace.KindMapping, pid, libc, "/bin/app"), mapping(trace.KindMapping, pid, victim, "/memfd:doublemapper"), call(pid, nil, victim+0x10, victim+0x50),
			mapping(trace.KindMapping, pid, victim, "/memfd:doublemapper"), call(pid, nil, victim+0x90),
			mapping(trace.KindUnmapping, pid, victim, "/memfd:doublemapper"),
			{Kind: trace.KindFunction, PID: pid, Function: trace.Function{Name: "B()", Start: victim + 0x40, End: victim + 0x60}},
			{Kind: trace.KindFunction, PID: pid, Function: trace.Function{Name: "A()", Start: victim, End: victim + 0x20}},
			{Kind: trace.KindExit, PID: pid, Exit: trace.Exit{Process: true}},
		}, nil, []string{
			"mapping 1 7f0000001000-7f0000002000 3000 /bin/app 0",
			"mapping 2 55550000-55551000 3000 /memfd:doublemapper 0", "process 4711 app",
			"mapping 3 55550000-55551000 3000 /memfd:doublemapper 0",
			"mapping 4 55550000-55550020 0 /memfd:doublemapper 0", "symbol 4 55550000-55550020 A()",
			"mapping 6 55550040-55550060 0 /memfd:doublemapper 0", "symbol 6 55550040-55550060 B()",
			"exit",
		}},
		{"code in a memfd that is still mapped", []trace.Record{
			process(pid, "app"), mapping(trace.KindMapping, pid, libc, "/bin/app"), mapping(trace.KindMapping, pid, victim, "/memfd:doublemapper"), call(pid, nil, victim+0x10, victim+0x50),
			mapping(trace.KindMapping, pid, victim, "/memfd:doublemapper"),
			{Kind: trace.KindFunction, PID: pid, Function: trace.Function{Name: "A()", Start: victim, End: victim + 0x20}},
		}, nil, []string{
			"mapping 1 7f0000001000-7f0000002000 3000 /bin/app 0",
			"mapping 2 55550000-55551000 3000 /memfd:doublemapper 0", "process 4711 app",
			"mapping 3 55550000-55551000 3000 /memfd:doublemapper 0",
			"symbol 3 5555000f-55550010 A()",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, version := range []int{nettrace.V6, nettrace.V4} {
				data, stats := encode(t, tt.records, nettrace.Options{Version: version, Symbols: tt.symbols})
				o := read(t, data)
				if version == nettrace.V4 {
					// The same bytes, without a description.
					if d := cmp.Diff(systemPayloads(t, tt.records, nettrace.V6, tt.symbols), systemPayloads(t, tt.records, nettrace.V4, tt.symbols)); d != "" {
						t.Errorf("version 4 (-of 6 +of 4):\n%s", d)
					}
					continue
				}
				if d := cmp.Diff(tt.want, o.system); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				if n := strings.Count(strings.Join(tt.want, "\n"), "symbol "); stats.Symbols != uint64(n) {
					t.Errorf("%d symbols counted, want %d", stats.Symbols, n)
				}
			}
		})
	}
}

func systemPayloads(t *testing.T, records []trace.Record, version int, symbols nettrace.Symbols) []string {
	t.Helper()
	data, _ := encode(t, records, nettrace.Options{Version: version, Symbols: symbols})
	return read(t, data).raw
}

// Version 6 describes every process. Version 4 describes only the first and has a
// remark.
func TestSeveralProcesses(t *testing.T) {
	records := []trace.Record{
		process(pid, "one"), mapping(trace.KindMapping, pid, 0x10000, "/bin/one"), process(pid+1, "two"), mapping(trace.KindMapping, pid+1, 0x10000, "/bin/two"),
		call(pid, []string{"f()"}, 0x10010), call(pid+1, []string{"g()"}, 0x10010), call(pid+1, []string{"g()"}, 0x10010),
	}
	v6, stats := encode(t, records, nettrace.Options{Version: nettrace.V6})
	want := []string{
		"mapping 1 10000-11000 3000 /bin/one 0", "mapping 2 10000-11000 3000 /bin/two 0",
		"process 4711 one", "process 4712 two", "symbol 1 1000f-10010 f", "symbol 2 1000f-10010 g",
	}
	if d := cmp.Diff(want, read(t, v6).system); d != "" || stats.Foreign != 0 {
		t.Errorf("version 6, %d foreign (-want +got):\n%s", stats.Foreign, d)
	}
	v4, stats := encode(t, records, nettrace.Options{})
	if n := len(read(t, v4).raw); n != 3 || stats.Foreign != 2 || len(stats.Remarks()) != 1 {
		t.Errorf("version 4: %d events, %+v, %q", n, stats, stats.Remarks())
	}
}

// The additional event of an allocation for PerfView's views has the fields of version
// 4 of the runtime's event.
func TestAllocTick(t *testing.T) {
	for _, pointer := range []int{4, 8} {
		records := []trace.Record{{Kind: trace.KindHeader, PID: pid, Time: 1, Header: trace.Header{PointerSize: pointer}}, call(pid, nil, 1)}
		records[1].Call.Size = 0x123456789a
		data, _ := encode(t, records, nettrace.Options{View: nettrace.ViewAllocTick})
		s := other(t, data)
		address := strings.Repeat("00", pointer)
		want := "ffffffff" + "00000000" + "0000" + "9a78563412000000" + address +
			"6e00610074006900760065002e006d0061006c006c006f00630000" + "00" + "00000000" + "10" + address[2:] + "9a78563412000000"
		got := s.payloads["Microsoft-Windows-DotNETRuntime/"]
		if len(got) != 1 || fmt.Sprintf("%x", got[0]) != want {
			t.Errorf("pointers of %d bytes: %x, want %s", pointer, got, want)
		}
	}
}
