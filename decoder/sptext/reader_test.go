package sptext

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/trace"
)

// read returns the records after Header and Process, and the error at the end.
func read(t *testing.T, opts Options, text string) ([]*trace.Record, error) {
	t.Helper()
	opts.Location = time.UTC
	d, err := New(strings.NewReader(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	return trace.Load(d)
}

const head = "version=2.0, arch=x86_64, timestamp=2026.11.21 09:32:17, process=/opt/demo/leak, pid=27147, " +
	"filter=leaks|compress, backtrace depth=10, origin=sp-rtrace 1.8, \n"

func wantHead() []*trace.Record {
	return []*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{
			Format: "sp-rtrace text", Version: "2.0", Arch: "x86_64", Clock: trace.ClockDay,
			Filter: "leaks|compress", Origin: "sp-rtrace 1.8",
		}},
		{Kind: trace.KindProcess, PID: 27147, Process: trace.Process{
			Name: "/opt/demo/leak", Depth: 10, WallTime: time.Date(2026, 11, 21, 9, 32, 17, 0, time.UTC).UnixNano(),
		}},
	}
}

func call(c trace.Call) *trace.Record { return &trace.Record{Kind: trace.KindCall, Call: c} }

func timed(ms int64, c trace.Call) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: ms * 1e6, Call: c}
}

func stack(frames ...uint64) trace.Stack {
	return trace.Stack{Frames: frames, End: trace.StackUnknown}
}

func resource(id uint32, typ, desc string, refs bool) *trace.Record {
	return &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: id, Type: typ, Desc: desc, RefCount: refs}}
}

func comment(s string) *trace.Record { return &trace.Record{Kind: trace.KindComment, Comment: s} }

func alloc(seq uint64, name string, size, id uint64) trace.Call {
	return trace.Call{Seq: seq, Op: trace.OpAlloc, Function: name, Size: size, ID: id}
}

func free(seq uint64, name string, id uint64) trace.Call {
	return trace.Call{Seq: seq, Op: trace.OpFree, Function: name, ID: id}
}

func with(c trace.Call, set func(*trace.Call)) trace.Call {
	set(&c)
	return c
}

// A call in legacy mode has a stack even if it is empty.
func legacyEmpty(c *trace.Call) { c.Stack.End = trace.StackUnknown }

var diffOptions = cmp.Options{cmpopts.EquateEmpty(), cmp.Transformer("", func(r *trace.Record) any { return payload(r) })}

// payload returns the part of a record that is compared.
func payload(r *trace.Record) any {
	common := []any{r.Kind.String(), r.Time, r.PID, r.TID}
	switch r.Kind {
	case trace.KindHeader:
		return append(common, r.Header)
	case trace.KindProcess:
		return append(common, r.Process)
	case trace.KindTracerModule:
		return append(common, r.TracerModule)
	case trace.KindResource:
		return append(common, r.Resource)
	case trace.KindContext:
		return append(common, r.Context)
	case trace.KindMapping, trace.KindUnmapping:
		return append(common, r.Mapping)
	case trace.KindCall:
		return append(common, r.Call)
	case trace.KindAttachment:
		return append(common, r.Attachment)
	case trace.KindComment:
		return append(common, r.Comment)
	case trace.KindExec:
		return append(common, r.Exec)
	case trace.KindLost:
		return append(common, r.Lost)
	}
	return common
}

func mapping(from, to uint64, path string) *trace.Record {
	return &trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: from, End: to, Path: path}}
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name         string
		text         string
		want, legacy []*trace.Record // legacy nil: same as want
	}{
		{
			"call forms", "1. malloc(100) = 0x55c9\n\n2. free(0x55c9)\n\n3. @1f f(1) = 0x2\n\n4. [00:42:22.936] g(0x1)\n\n5. @2 [01:00:00.001] h(0x1)\n\n",
			[]*trace.Record{
				call(alloc(1, "malloc", 100, 0x55c9)), call(free(2, "free", 0x55c9)),
				call(with(alloc(3, "f", 1, 2), func(c *trace.Call) { c.Context = 0x1f })),
				timed(2542936, free(4, "g", 1)),
				timed(3600001, with(free(5, "h", 1), func(c *trace.Call) { c.Context = 2 })),
			},
			[]*trace.Record{
				call(with(alloc(1, "malloc", 100, 0x55c9), legacyEmpty)), call(with(free(2, "free", 0x55c9), legacyEmpty)),
				call(with(alloc(3, "f", 1, 2), func(c *trace.Call) { c.Context = 0x1f; legacyEmpty(c) })),
				timed(2542936, with(free(4, "g", 1), legacyEmpty)),
				timed(3600001, with(free(5, "h", 1), func(c *trace.Call) { c.Context = 2; legacyEmpty(c) })),
			},
		},
		{
			"stack", "1. free(0x1)\n\t0x401000\n\t0x7f0000000001 main() at a.c:7\n\t0x2\n\n",
			[]*trace.Record{call(with(free(1, "free", 1), func(c *trace.Call) {
				c.Stack = stack(0x401000, 0x7f0000000001, 2)
				c.Stack.Names = []string{"", "main() at a.c:7", ""}
			}))},
			nil,
		},
		{
			"group", "1. a(0x1)\n2. b(0x2)\n\t$x = 1\n\t$y = 2\n3. c(0x3)\n\t0x10\n\n4. d(0x4)\n\t0x20\n5. e(0x5)\n\t0x30\n\n",
			[]*trace.Record{
				call(with(free(1, "a", 1), func(c *trace.Call) { c.Stack = stack(0x10) })),
				call(with(free(2, "b", 2), func(c *trace.Call) {
					c.Stack, c.Args = stack(0x10), []trace.Arg{{Name: "x", Value: "1"}, {Name: "y", Value: "2"}}
				})),
				call(with(free(3, "c", 3), func(c *trace.Call) { c.Stack = stack(0x10) })),
				call(with(free(4, "d", 4), func(c *trace.Call) { c.Stack = stack(0x20) })),
				call(with(free(5, "e", 5), func(c *trace.Call) { c.Stack = stack(0x30) })),
			},
			nil,
		},
		{
			"group ended by a record", "1. a(0x1)\n: /x => 0x1-0x2\n\t0x10\n",
			[]*trace.Record{call(free(1, "a", 1)), mapping(1, 2, "/x")},
			[]*trace.Record{call(with(free(1, "a", 1), legacyEmpty)), mapping(1, 2, "/x")},
		},
		{
			"group not ended by a temporary comment", "1. a(0x1)\n# allocation summary: 1 block(s) with total size 0\n\t0x10\n\n",
			[]*trace.Record{call(with(free(1, "a", 1), func(c *trace.Call) { c.Stack = stack(0x10) }))},
			nil,
		},
		{
			"argument with white space", "1. a(0x1)\n\t$path = /tmp/a b\n\t$empty = \n\n",
			[]*trace.Record{call(with(free(1, "a", 1), func(c *trace.Call) {
				c.Args = []trace.Arg{{Name: "path", Value: "/tmp/a b"}, {Name: "empty", Value: ""}}
			}))},
			[]*trace.Record{call(with(free(1, "a", 1), func(c *trace.Call) {
				c.Args = []trace.Arg{{Name: "path", Value: "/tmp/a"}}
				legacyEmpty(c)
			})), comment("\t$empty = ")},
		},
		{
			"quoted", "1. \\x40a\\x3e(0x1)\n\t$p\\x20q = /tmp/a\\x20b\\x5cx41\\xzz\n\n: /a\\x20b => 0x1-0x2\n",
			[]*trace.Record{call(with(free(1, "@a>", 1), func(c *trace.Call) {
				c.Args = []trace.Arg{{Name: "p q", Value: `/tmp/a b\x41\xzz`}}
			})), mapping(1, 2, "/a b")},
			[]*trace.Record{call(with(free(1, `\x40a\x3e`, 1), func(c *trace.Call) {
				c.Args = []trace.Arg{{Name: `p\x20q`, Value: `/tmp/a\x20b\x5cx41\xzz`}}
				legacyEmpty(c)
			})), mapping(1, 2, `/a\x20b`)},
		},
		{
			"mapping with a space", ": /a b => 0x1-0x2\n",
			[]*trace.Record{mapping(1, 2, "/a b")},
			[]*trace.Record{comment(": /a b => 0x1-0x2")},
		},
		{
			"context", "@ 10 : gui update\n",
			[]*trace.Record{{Kind: trace.KindContext, Context: trace.Context{ID: 16, Name: "gui update"}}},
			[]*trace.Record{{Kind: trace.KindContext, Context: trace.Context{Name: "(null)"}}},
		},
		{
			"resources", "<1> : memory (memory allocation in bytes)\n<100> : segment (a) [refcount]\n<6> : low (b) [x|refcount|y]\n<0> : zero (c)\n<8> : memory (again)\n",
			[]*trace.Record{
				resource(1, "memory", "memory allocation in bytes", false), resource(9, "segment", "a", true),
				resource(2, "low", "b", true), resource(0, "zero", "c", false),
			},
			nil,
		},
		{
			"resource without description", "<1> : memory ()\n",
			[]*trace.Record{resource(1, "memory", "", false)},
			[]*trace.Record{comment("<1> : memory ()")},
		},
		{
			"types", "<1> : a (x)\n<4> : b (y)\n1. f<b>(1) = 0x1\n\n2. f<a>(0x1)\n\n3. f(0x1)\n\n4. operator new[](unsigned long)<b>(0x1)\n\n",
			[]*trace.Record{
				resource(1, "a", "x", false), resource(3, "b", "y", false),
				call(with(alloc(1, "f", 1, 1), func(c *trace.Call) { c.Resource = 3 })),
				call(with(free(2, "f", 1), func(c *trace.Call) { c.Resource = 1 })),
				call(with(free(3, "f", 1), func(c *trace.Call) { c.Resource = 1 })),
				call(with(free(4, "operator new[](unsigned long)", 1), func(c *trace.Call) { c.Resource = 3 })),
			},
			[]*trace.Record{
				resource(1, "a", "x", false), resource(3, "b", "y", false),
				call(with(alloc(1, "f", 1, 1), func(c *trace.Call) { c.Resource = 3; legacyEmpty(c) })),
				call(with(free(2, "f", 1), func(c *trace.Call) { c.Resource = 1; legacyEmpty(c) })),
				call(with(free(3, "f", 1), func(c *trace.Call) { c.Resource = 1; legacyEmpty(c) })),
				call(with(free(4, "operator new[](unsigned long)", 1), func(c *trace.Call) { c.Resource = 3; legacyEmpty(c) })),
			},
		},
		{"unknown type", "<1> : a (x)\n1. f<int>(0x1)\n\n", []*trace.Record{
			resource(1, "a", "x", false), call(with(free(1, "f<int>", 1), func(c *trace.Call) { c.Resource = 1 })),
		}, []*trace.Record{
			resource(1, "a", "x", false), call(with(free(1, "f", 1), legacyEmpty)),
		}},
		{"types without declarations", "1. f<a>(0x1)\n2. f<b>(0x1)\n\t0x1\n3. f<a>(0x1)\n\n", []*trace.Record{
			resource(1, "a", "", false), resource(2, "b", "", false),
			call(with(free(1, "f", 1), func(c *trace.Call) { c.Resource, c.Stack = 1, stack(1) })),
			call(with(free(2, "f", 1), func(c *trace.Call) { c.Resource, c.Stack = 2, stack(1) })),
			call(with(free(3, "f", 1), func(c *trace.Call) { c.Resource = 1 })),
		}, []*trace.Record{
			call(with(free(1, "f", 1), func(c *trace.Call) { c.Stack = stack(1) })),
			call(with(free(2, "f", 1), func(c *trace.Call) { c.Stack = stack(1) })),
			call(with(free(3, "f", 1), legacyEmpty)),
		}},
		{"attachment", "& maps : 1-maps-0\n", []*trace.Record{
			{Kind: trace.KindAttachment, Attachment: trace.Attachment{Name: "maps", Path: "1-maps-0"}},
		}, nil},
		{"comments", "## kept\n# dropped\n#kept, too\nProcess 7 exited\n\n", []*trace.Record{
			comment("## kept"), comment("#kept, too"), comment("Process 7 exited"),
		}, nil},
		{
			"records in comments", "## tracing module: [10] file (1.2)\n## lost: 12 events (ring full)\n## unmapped: /x => 0x1-0x2\n## exec: sh\n",
			[]*trace.Record{
				{Kind: trace.KindTracerModule, TracerModule: trace.TracerModule{ID: 16, Major: 1, Minor: 2, Name: "file"}},
				{Kind: trace.KindLost, Lost: trace.Lost{Count: 12, Reason: "ring full"}},
				{Kind: trace.KindUnmapping, Mapping: trace.Mapping{Start: 1, End: 2, Path: "/x"}},
				{Kind: trace.KindExec, Exec: trace.Exec{Name: "sh"}},
			},
			[]*trace.Record{
				comment("## tracing module: [10] file (1.2)"), comment("## lost: 12 events (ring full)"),
				comment("## unmapped: /x => 0x1-0x2"), comment("## exec: sh"),
			},
		},
		{
			"records in comments, broken", "## tracing module: [10] file\n## tracing module: [10] file (70000.1)\n## lost: many events (x)\n## unmapped: x\n",
			[]*trace.Record{
				comment("## tracing module: [10] file"), comment("## tracing module: [10] file (70000.1)"),
				comment("## lost: many events (x)"), comment("## unmapped: x"),
			},
			nil,
		},
		{"not quite calls", "1 malloc(1) = 0x1\n1.malloc(1)=0x1\n1. malloc 1\n1. malloc(1)\n1. malloc(1) = 1\n1. f<>(0x1)\n1. a>(0x1)<\n", []*trace.Record{
			comment("1 malloc(1) = 0x1"), comment("1.malloc(1)=0x1"), comment("1. malloc 1"), comment("1. malloc(1)"),
			comment("1. malloc(1) = 1"), comment("1. f<>(0x1)"), comment("1. a>(0x1)<"),
		}, nil},
		{"white space as scanf has it", "1. f( 5)=0x1\n\n2. @ 3 g( 5 )\n\n3. f(+5) \t=  0x0x1\n\n", []*trace.Record{
			call(alloc(1, "f", 5, 1)), comment("2. @ 3 g( 5 )"), call(alloc(3, "f", 5, 1)),
		}, []*trace.Record{
			call(with(alloc(1, "f", 5, 1), legacyEmpty)), comment("2. @ 3 g( 5 )"), call(with(alloc(3, "f", 5, 1), legacyEmpty)),
		}},
		{"sizes", "1. f(-2147483632) = 0x1\n\n2. f(4294967297) = 0xffffffffffffffffff\n\n3. f(99999999999999999999) = 0x1\n\n", []*trace.Record{
			call(alloc(1, "f", 0x80000010, 1)), call(alloc(2, "f", 1<<32+1, ^uint64(0))), call(alloc(3, "f", ^uint64(0), 1)),
		}, []*trace.Record{
			call(with(alloc(1, "f", 0x80000010, 1), legacyEmpty)), call(with(alloc(2, "f", 1, ^uint64(0)), legacyEmpty)),
			call(with(alloc(3, "f", 1<<32-1, 1), legacyEmpty)),
		}},
		{"fractions of a second", "1. [00:00:01.5] f(0x1)\n\n2. [00:00:01.000005] f(0x1)\n\n", []*trace.Record{
			timed(1500, free(1, "f", 1)), {Kind: trace.KindCall, Time: 1000005000, Call: free(2, "f", 1)},
		}, []*trace.Record{
			timed(1005, with(free(1, "f", 1), legacyEmpty)), timed(1005, with(free(2, "f", 1), legacyEmpty)),
		}},
		{"index zero", "0. f(0x1)\n\n", []*trace.Record{call(free(0, "f", 1))}, []*trace.Record{call(with(free(0, "f", 1), legacyEmpty))}},
		{"line end of two bytes", "1. f(0x1)\r\n\t0x1\r\n\r\n", []*trace.Record{
			call(with(free(1, "f", 1), func(c *trace.Call) { c.Stack = stack(1) })),
		}, []*trace.Record{
			call(with(free(1, "f", 1), func(c *trace.Call) {
				c.Stack = stack(1)
				c.Stack.Names = nil
			})), comment("\r"),
		}},
		{"stack without a call", "\t0x1\n\t$a = b\n", nil, nil},
		{
			"frame is no address", "1. f(0x1)\n\tx\n\t0xg\n\n",
			[]*trace.Record{call(free(1, "f", 1)), comment("\tx"), comment("\t0xg")},
			[]*trace.Record{call(with(free(1, "f", 1), legacyEmpty)), comment("\tx"), comment("\t0xg")},
		},
	} {
		legacy := tt.legacy
		if legacy == nil {
			legacy = tt.want
		}
		for name, opts := range map[string]Options{"": {}, " legacy": {Legacy: true}} {
			t.Run(tt.name+name, func(t *testing.T) {
				want := append(wantHead(), tt.want...)
				if opts.Legacy {
					want = append(wantHead(), legacy...)
				}
				got, err := read(t, opts, head+tt.text)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got, diffOptions); d != "" {
					t.Errorf("records (-want +got):\n%s", d)
				}
			})
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		name    string
		opts    Options
		line    string
		header  trace.Header
		process trace.Process
		pid     int32
	}{
		{
			"functracer",
			Options{},
			"version=2.0, arch=arm, timestamp=21.11.2026 09:32:17, process=a b, pid=7, origin=functracer 1.4\n",
			trace.Header{Version: "2.0", Arch: "arm", Origin: "functracer 1.4"},
			trace.Process{Name: "a b", Depth: -1, WallTime: time.Date(2026, 11, 21, 9, 32, 17, 0, time.UTC).UnixNano()},
			7,
		},
		{
			"functracer legacy",
			Options{Legacy: true},
			"version=2.0, arch=arm, timestamp=21.11.2026 09:32:17, process=a b, pid=7, origin=functracer 1.4\n",
			trace.Header{Version: "2.0", Arch: "arm", Origin: "functracer 1.4\n"},
			trace.Process{Name: "a b", Depth: -1},
			7,
		},
		{"comma", Options{}, "process=a\\x2cb, pid=7, \n", trace.Header{}, trace.Process{Name: "a,b", Depth: -1}, 7},
		{"raw comma", Options{}, "process=a b,c, pid=7, \n", trace.Header{}, trace.Process{Name: "a b,c", Depth: -1}, 7},
		{"raw commas and an equals sign", Options{}, "process=/bin/a, --x=1, b, pid=7, \n", trace.Header{}, trace.Process{Name: "/bin/a, --x=1, b", Depth: -1}, 7},
		{"raw comma at the end", Options{}, "pid=7, process=a,b, \n", trace.Header{}, trace.Process{Name: "a,b", Depth: -1}, 7},
		{"raw comma of the original", Options{Legacy: true}, "process=a b,c, pid=7, \n", trace.Header{}, trace.Process{Name: "a b", Depth: -1}, 0},
		{"empty value", Options{}, "arch=, pid=7, \n", trace.Header{}, trace.Process{Depth: -1}, 7},
		{"empty value legacy", Options{Legacy: true}, "arch=, pid=7, \n", trace.Header{}, trace.Process{Depth: -1}, 0},
		{"bad numbers", Options{}, "pid=x, backtrace depth=y, timestamp=z, \n", trace.Header{}, trace.Process{}, 0},
		{"legacy takes any line", Options{Legacy: true}, "## no header\n", trace.Header{}, trace.Process{Depth: -1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, tt.opts, tt.line)
			if err != nil || len(got) != 2 {
				t.Fatalf("%d records, %v", len(got), err)
			}
			tt.header.Format, tt.header.Clock = "sp-rtrace text", trace.ClockDay
			if got[0].Header != tt.header || got[1].Process != tt.process || got[1].PID != tt.pid {
				t.Errorf("got %+v\n%+v pid %d\nwant %+v\n%+v pid %d", got[0].Header, got[1].Process, got[1].PID, tt.header, tt.process, tt.pid)
			}
		})
	}
}

// TestTimestampLegacy: the original takes 21.11.2026 for year 21, November, day 2026,
// and prints the 19th of May in year 27.
func TestTimestampLegacy(t *testing.T) {
	d, err := New(strings.NewReader("timestamp=21.11.2026 09:32:17, \n"), Options{Legacy: true, Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Load(d); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Timestamp().Format("2006.1.2 15:04:05"), "0027.5.19 09:32:17"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWithoutHeader(t *testing.T) {
	got, err := read(t, Options{}, "1. f(0x1)\n\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{Format: "sp-rtrace text", Clock: trace.ClockDay}}, call(free(1, "f", 1)),
	}
	if d := cmp.Diff(want, got, diffOptions); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}
