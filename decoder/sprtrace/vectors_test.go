package sprtrace

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// unhex returns the bytes of hexadecimal text. It ignores spaces; characters between
// single quotes stand for themselves.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	var out []byte
	for i, part := range strings.Split(text, "'") {
		if i%2 == 1 {
			out = append(out, part...)
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(part, " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", part, err)
		}
		out = append(out, b...)
	}
	return out
}

// Handshakes, by version, byte order and pointer size.
const (
	hs20     = "f0 0e 02 00 06 'x86_64' 00 08 000000 "
	hs20i    = "f0 0a 02 00 04 'i686' 00 04 00 "
	hs20s390 = "f0 0a 02 00 05 's390x' 01 08 "
	hs20ppc  = "f0 0a 02 00 03 'ppc' 01 04 0000 "
	hs14     = "f0 0e 01 04 06 'x86_64' 00 08 000000 "
	hs14arm  = "f0 0a 01 04 03 'arm' 00 04 0000 "
	hs13     = "f0 0e 01 03 06 'x86_64' 00 08 000000 "
	hs12     = "f0 0e 01 02 06 'x86_64' 00 08 000000 "
	hs10     = "f0 0a 01 00 03 'arm' 00 04 0000 "
)

// rec returns a record of which set sets the payload.
func rec(kind trace.Kind, set func(*trace.Record)) *trace.Record {
	r := &trace.Record{Kind: kind}
	set(r)
	return r
}

func call(c trace.Call, ms int64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: ms * 1e6, Call: c}
}

var noStack = trace.Stack{}

func stack(frames ...uint64) trace.Stack {
	return trace.Stack{Frames: frames, End: trace.StackUnknown}
}

// Every packet in every version, dialect, byte order and pointer size.
var vectors = []struct {
	name string
	hex  string
	want []*trace.Record
}{
	{
		"PINF 2.0",
		hs20 + "'PINF' 18000000 d2040000 00000060 40e20100 0a000000 0600 './leak'",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1234, Process: trace.Process{
			Name: "./leak", WallTime: 0x60000000*1e9 + 123456e3, Depth: 10,
		}}},
	},
	{
		"PINF after 2038, depth unknown",
		hs20 + "'PINF' 18000000 01000000 ffffffff 00000000 ffffffff 0600 'x' 0000000000",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1, Process: trace.Process{Name: "x", WallTime: 0xffffffff * 1e9, Depth: -1}}},
	},
	{
		"PINF big-endian",
		hs20s390 + "'FNIP' 00000018 000004d2 60000000 0001e240 0000000a 0006 './leak'",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1234, Process: trace.Process{
			Name: "./leak", WallTime: 0x60000000*1e9 + 123456e3, Depth: 10,
		}}},
	},
	{
		"PINF big-endian, letters in order",
		hs20s390 + "'PINF' 00000018 000004d2 60000000 0001e240 0000000a 0006 './leak'",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1234, Process: trace.Process{
			Name: "./leak", WallTime: 0x60000000*1e9 + 123456e3, Depth: 10,
		}}},
	},
	{
		"PINF 1.2 has the depth",
		hs12 + "18000000 'PINF' 01000000 00000000 00000000 05000000 0200 'ab'",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1, Process: trace.Process{Name: "ab", Depth: 5}}},
	},
	{
		"PINF 1.0 has no depth; wrong letters",
		hs10 + "14000000 'PIII' 01000000 00000000 00000000 0200 'ab'",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1, Process: trace.Process{Name: "ab", Depth: -1}}},
	},
	{
		"PINF document",
		hs14 + "'PINF' 18000000 01000000 00000000 00000000 05000000 0300 'abc' 000000",
		[]*trace.Record{{Kind: trace.KindProcess, PID: 1, Process: trace.Process{Name: "abc", Depth: 5}}},
	},
	{
		"MINF 2.0",
		hs20 + "'MINF' 10000000 04000000 03000200 0600 'memory'",
		[]*trace.Record{rec(trace.KindTracerModule, func(r *trace.Record) {
			r.TracerModule = trace.TracerModule{ID: 4, Major: 2, Minor: 3, Name: "memory"}
		})},
	},
	{
		"MINF 1.0 wrong letters",
		hs10 + "14000000 'MIII' 04000000 03000200 0600 'memory'",
		[]*trace.Record{rec(trace.KindTracerModule, func(r *trace.Record) {
			r.TracerModule = trace.TracerModule{ID: 4, Major: 2, Minor: 3, Name: "memory"}
		})},
	},
	{
		"RESR 2.0",
		hs20 + "'RESR' 18000000 02000000 01000000 0200 'fd' 0a00 'file' 00 'desc' 00",
		[]*trace.Record{rec(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: 2, RefCount: true, Type: "fd", Desc: "file"}
		})},
	},
	{
		"RESR 1.3 has flags",
		hs13 + "18000000 'RESR' 02000000 01000000 0200 'fd' 0600 'file' 0000",
		[]*trace.Record{rec(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: 2, RefCount: true, Type: "fd", Desc: "file"}
		})},
	},
	{
		"RESR 1.2 has none",
		hs12 + "14000000 'RESR' 02000000 0200 'fd' 0600 'file' 0000",
		[]*trace.Record{rec(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: 2, Type: "fd", Desc: "file"}
		})},
	},
	{
		"RESR 1.0 wrong letters, NULL and empty string",
		hs10 + "10000000 'REEE' 02000000 0000 0000 0200 0000",
		[]*trace.Record{rec(trace.KindResource, func(r *trace.Record) { r.Resource.ID = 2 })},
	},
	{
		"RESR document, exact strings",
		hs14 + "'RESR' 18000000 02000000 00000000 0200 'fd' 0700 'filedes' 000000",
		[]*trace.Record{rec(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: 2, Type: "fd", Desc: "filedes"}
		})},
	},
	{
		"CTXR 2.0",
		hs20 + "'CTXR' 0c000000 04000000 0600 'phase' 00",
		[]*trace.Record{rec(trace.KindContext, func(r *trace.Record) { r.Context = trace.Context{ID: 4, Name: "phase"} })},
	},
	{
		"CTXR 1.0 wrong letters",
		hs10 + "10000000 'CTTT' 04000000 0600 'phase' 00",
		[]*trace.Record{rec(trace.KindContext, func(r *trace.Record) { r.Context = trace.Context{ID: 4, Name: "phase"} })},
	},
	{
		"MMAP 64 bit",
		hs20 + "'MMAP' 18000000 006010d8107f0000 008010d8107f0000 0600 '[vdso]'",
		[]*trace.Record{rec(trace.KindMapping, func(r *trace.Record) {
			r.Mapping = trace.Mapping{Start: 0x7f10d8106000, End: 0x7f10d8108000, Path: "[vdso]"}
		})},
	},
	{
		"MMAP 32 bit",
		hs20i + "'MMAP' 10000000 00800408 00900408 0600 '[vdso]'",
		[]*trace.Record{rec(trace.KindMapping, func(r *trace.Record) {
			r.Mapping = trace.Mapping{Start: 0x08048000, End: 0x08049000, Path: "[vdso]"}
		})},
	},
	{
		"MMAP big-endian 32 bit",
		hs20ppc + "'PAMM' 00000010 10000000 fffff000 0006 '/a.out'",
		[]*trace.Record{rec(trace.KindMapping, func(r *trace.Record) {
			r.Mapping = trace.Mapping{Start: 0x10000000, End: 0xfffff000, Path: "/a.out"}
		})},
	},
	{
		"MMAP 1.0 wrong letters",
		hs10 + "14000000 'MMMM' 00800408 00900408 0600 '[vdso]'",
		[]*trace.Record{rec(trace.KindMapping, func(r *trace.Record) {
			r.Mapping = trace.Mapping{Start: 0x08048000, End: 0x08049000, Path: "[vdso]"}
		})},
	},
	{
		"FILE 2.0",
		hs20 + "'FILE' 10000000 0600 'maps' 0000 0600 'm.txt' 00",
		[]*trace.Record{rec(trace.KindAttachment, func(r *trace.Record) {
			r.Attachment = trace.Attachment{Name: "maps", Path: "m.txt"}
		})},
	},
	{
		"FILE 1.4",
		hs14 + "14000000 'FILE' 0600 'maps' 0000 0600 'm.txt' 00",
		[]*trace.Record{rec(trace.KindAttachment, func(r *trace.Record) {
			r.Attachment = trace.Attachment{Name: "maps", Path: "m.txt"}
		})},
	},
	{
		"OCFG",
		hs20 + "'OCFG' 08000000 0200 'ab' 0200 '-l'",
		[]*trace.Record{rec(trace.KindOpaque, func(r *trace.Record) {
			r.Opaque = trace.Opaque{Format: "sp-rtrace", ID: 0x4746434f, Data: []byte("\x02\x00ab\x02\x00-l")}
		})},
	},
	{
		"OCFG 1.0 wrong letters",
		hs10 + "0c000000 'OCCC' 0200 'ab' 0200 '-l'",
		[]*trace.Record{rec(trace.KindOpaque, func(r *trace.Record) {
			r.Opaque = trace.Opaque{Format: "sp-rtrace", ID: 0x4746434f, Data: []byte("\x02\x00ab\x02\x00-l")}
		})},
	},
	{
		"NLIB",
		hs20 + "'NLIB' 04000000 0200 '*' 00",
		[]*trace.Record{rec(trace.KindOpaque, func(r *trace.Record) {
			r.Opaque = trace.Opaque{Format: "sp-rtrace", ID: 0x42494c4e, Data: []byte("\x02\x00*\x00")}
		})},
	},
	{
		"NLIB 1.0 wrong letters",
		hs10 + "08000000 'NLLL' 0200 '*' 00",
		[]*trace.Record{rec(trace.KindOpaque, func(r *trace.Record) {
			r.Opaque = trace.Opaque{Format: "sp-rtrace", ID: 0x42494c4e, Data: []byte("\x02\x00*\x00")}
		})},
	},
	{
		"HINF 64 bit",
		hs20 + "'HINF' 38000000 00806d927e550000 00906f927e550000 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 ffffffff",
		[]*trace.Record{rec(trace.KindHeapInfo, func(r *trace.Record) {
			r.HeapInfo = trace.HeapInfo{Bottom: 0x557e926d8000, Top: 0x557e926f9000, Arena: 1, OrdBlks: 2, SmBlks: 3, HBlks: 4, HBlkHd: 5, UsmBlks: 6, FsmBlks: 7, UordBlks: 8, FordBlks: 9, KeepCost: 0xffffffff}
		})},
	},
	{
		"HINF 64 bit, pointers cut",
		hs20 + "'HINF' 30000000 00806d92 00906f92 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 0a000000",
		[]*trace.Record{rec(trace.KindHeapInfo, func(r *trace.Record) {
			r.HeapInfo = trace.HeapInfo{Bottom: 0x926d8000, Top: 0x926f9000, Arena: 1, OrdBlks: 2, SmBlks: 3, HBlks: 4, HBlkHd: 5, UsmBlks: 6, FsmBlks: 7, UordBlks: 8, FordBlks: 9, KeepCost: 10}
		})},
	},
	{
		"HINF 32 bit, 1.0 wrong letters",
		hs10 + "34000000 'HIII' 00800408 00900408 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 0a000000",
		[]*trace.Record{rec(trace.KindHeapInfo, func(r *trace.Record) {
			r.HeapInfo = trace.HeapInfo{Bottom: 0x08048000, Top: 0x08049000, Arena: 1, OrdBlks: 2, SmBlks: 3, HBlks: 4, HBlkHd: 5, UsmBlks: 6, FsmBlks: 7, UordBlks: 8, FordBlks: 9, KeepCost: 10}
		})},
	},
	{
		"CALL BTRC 2.0",
		hs20 + "'CALL' 24000000 01000000 02000000 58cd2600 02000000 0600 'malloc' 64000000 a06226a2c9550000" +
			"'BTRC' 14000000 02000000 b8b17e75c9550000 f1b17e75c9550000",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Context: 2, Size: 100, ID: 0x55c9a22662a0,
			Stack: stack(0x55c9757eb1b8, 0x55c9757eb1f1),
		}, 2542936)},
	},
	{
		"CALL without BTRC, then free with an empty one",
		hs20 + "'CALL' 24000000 01000000 00000000 00000000 02000000 0600 'malloc' 64000000 a06226a2c9550000" +
			"'CALL' 24000000 01000000 00000000 01000000 01000000 0600 'free' 0000 00000000 a06226a2c9550000" +
			"'BTRC' 04000000 00000000",
		[]*trace.Record{
			call(trace.Call{Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 100, ID: 0x55c9a22662a0, Stack: noStack}, 0),
			call(trace.Call{Seq: 2, Op: trace.OpFree, Function: "free", Resource: 1, ID: 0x55c9a22662a0, Stack: stack()}, 1),
		},
	},
	{
		"CALL type 0, negative size",
		hs20 + "'CALL' 24000000 01000000 00000000 01000000 00000000 0600 'calloc' 10000080 0100000000000000",
		[]*trace.Record{call(trace.Call{Seq: 1, Op: trace.OpNone, Function: "calloc", Resource: 1, Size: 0x80000010, ID: 1}, 1)},
	},
	{
		"CALL ARGS BTRC 2.0",
		hs20 + "'CALL' 24000000 01000000 00000000 01000000 02000000 0600 'socket' 01000000 0400000000000000" +
			"'ARGS' 28000000 02000000 0600 'domain' 0600 '0x2' 000000 0600 'type' 0000 0a00 '0x1' 00000000000000" +
			"'BTRC' 0c000000 01000000 1000000000000000",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "socket", Resource: 1, Size: 1, ID: 4, Stack: stack(16),
			Args: []trace.Arg{{Name: "domain", Value: "0x2"}, {Name: "type", Value: "0x1"}},
		}, 1)},
	},
	{
		"CALL BTRC ARGS, as the document has it",
		hs20 + "'CALL' 24000000 01000000 00000000 01000000 02000000 0600 'socket' 01000000 0400000000000000" +
			"'BTRC' 0c000000 01000000 1000000000000000" +
			"'ARGS' 14000000 01000000 0600 'domain' 0600 '0x2' 000000",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "socket", Resource: 1, Size: 1, ID: 4, Stack: stack(16),
			Args: []trace.Arg{{Name: "domain", Value: "0x2"}},
		}, 1)},
	},
	{
		"CALL FILE BTRC: FILE does not part them",
		hs20 + "'CALL' 24000000 01000000 00000000 01000000 02000000 0600 'malloc' 01000000 0400000000000000" +
			"'FILE' 08000000 0200 'ab' 0200 'cd'" +
			"'BTRC' 0c000000 01000000 1000000000000000",
		[]*trace.Record{
			call(trace.Call{Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 1, ID: 4, Stack: stack(16)}, 1),
			rec(trace.KindAttachment, func(r *trace.Record) { r.Attachment = trace.Attachment{Name: "ab", Path: "cd"} }),
		},
	},
	{
		"CALL BTRC 32 bit",
		hs20i + "'CALL' 20000000 01000000 00000000 01000000 02000000 0600 'malloc' 64000000 08a00408" +
			"'BTRC' 0c000000 02000000 b8810408 f1810408",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 100, ID: 0x0804a008, Stack: stack(0x080481b8, 0x080481f1),
		}, 1)},
	},
	{
		"CALL ARGS BTRC big-endian",
		hs20s390 + "'LLAC' 00000024 00000001 00000002 0026cd58 00000002 0006 'malloc' 00000064 000055c9a22662a0" +
			"'SGRA' 0000000c 00000001 0002 'n' 00 0002 '1' 00" +
			"'CRTB' 0000000c 00000001 000055c9757eb1b8",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Context: 2, Size: 100, ID: 0x55c9a22662a0,
			Stack: stack(0x55c9757eb1b8), Args: []trace.Arg{{Name: "n", Value: "1"}},
		}, 2542936)},
	},
	{
		"CALL BTRC big-endian, letters in order",
		hs20s390 + "'CALL' 00000024 00000001 00000000 0026cd58 00000002 0006 'malloc' 00000064 000055c9a22662a0" +
			"'BTRC' 0000000c 00000001 000055c9757eb1b8",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 100, ID: 0x55c9a22662a0, Stack: stack(0x55c9757eb1b8),
		}, 2542936)},
	},
	{
		"CALL BTRC 1.4 of real tools",
		hs14 + "28000000 'CALL' 01000000 00000000 58cd2600 02000000 0600 'malloc' 64000000 a06226a2c9550000" +
			"10000000 'BTRC' 01000000 b8b17e75c9550000",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 100, ID: 0x55c9a22662a0, Stack: stack(0x55c9757eb1b8),
		}, 2542936)},
	},
	{
		"CALL ARGS BTRC 1.2: one text per argument",
		hs12 + "28000000 'CALL' 01000000 00000000 01000000 02000000 0600 'socket' 01000000 0400000000000000" +
			"18000000 'ARGS' 02000000 0600 'domain' 0600 '0x2' 000000" +
			"08000000 'BTRC' 00000000",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "socket", Resource: 1, Size: 1, ID: 4, Stack: stack(),
			Args: []trace.Arg{{Value: "domain"}, {Value: "0x2"}},
		}, 1)},
	},
	{
		"CALL ARGS BTRC 1.0 wrong letters",
		hs10 + "24000000 'CAAA' 01000000 00000000 01000000 02000000 0600 'socket' 01000000 04000000" +
			"10000000 'ARRR' 01000000 0600 'domain'" +
			"0c000000 'BTTT' 01000000 b8810408",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "socket", Resource: 1, Size: 1, ID: 4, Stack: stack(0x080481b8),
			Args: []trace.Arg{{Value: "domain"}},
		}, 1)},
	},
	{
		"CALL BTRC ARGS of the document",
		hs14 + "'CALL' 24000000 58cd2600 01000000 00000000 02000000 0400 'open' 0000 a06226a2c9550000 64000000" +
			"'BTRC' 0c000000 01000000 b8b17e75c9550000" +
			"'ARGS' 10000000 01000000 0400 'path' 0000 0100 '/' 00",
		[]*trace.Record{call(trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "open", Resource: 1, Size: 100, ID: 0x55c9a22662a0, Stack: stack(0x55c9757eb1b8),
			Args: []trace.Arg{{Name: "path", Value: "/"}},
		}, 2542936)},
	},
	{
		"CALL of the document, 32 bit, resource 0 for the only one",
		hs14arm + "'RESR' 10000000 07000000 00000000 0200 'fd' 0000 0000" +
			"'CALL' 20000000 58cd2600 00000000 00000000 01000000 0500 'close' 00 04000000 00000000",
		[]*trace.Record{
			rec(trace.KindResource, func(r *trace.Record) { r.Resource = trace.Resource{ID: 7, Type: "fd"} }),
			call(trace.Call{Seq: 1, Op: trace.OpFree, Function: "close", Resource: 7, ID: 4}, 2542936),
		},
	},
	{
		"CALL of the document in a trace that says 2.0",
		hs20 + "'CALL' 24000000 58cd2600 01000000 00000000 02000000 0400 'open' 0000 a06226a2c9550000 64000000",
		[]*trace.Record{call(trace.Call{Seq: 1, Op: trace.OpAlloc, Function: "open", Resource: 1, Size: 100, ID: 0x55c9a22662a0}, 2542936)},
	},
	{
		"real CALL in a trace of the document",
		hs14 + "'CALL' 24000000 01000000 00000000 58cd2600 02000000 0400 'open' 0000 64000000 a06226a2c9550000" +
			"'CALL' 24000000 01000000 00000000 59cd2600 01000000 0500 'close' 00 00000000 a06226a2c9550000",
		[]*trace.Record{
			call(trace.Call{Seq: 1, Op: trace.OpAlloc, Function: "open", Resource: 1, Size: 100, ID: 0x55c9a22662a0}, 2542936),
			call(trace.Call{Seq: 2, Op: trace.OpFree, Function: "close", Resource: 1, ID: 0x55c9a22662a0}, 2542937),
		},
	},
	{
		"little-endian packets behind a handshake that says big",
		hs20s390 + "'MINF' 10000000 04000000 03000200 0600 'memory'" + "'MINF' 10000000 04000000 03000200 0600 'memory'",
		[]*trace.Record{
			rec(trace.KindTracerModule, func(r *trace.Record) {
				r.TracerModule = trace.TracerModule{ID: 4, Major: 2, Minor: 3, Name: "memory"}
			}),
			rec(trace.KindTracerModule, func(r *trace.Record) {
				r.TracerModule = trace.TracerModule{ID: 4, Major: 2, Minor: 3, Name: "memory"}
			}),
		},
	},
	{
		"size first in a trace that says 2.0",
		hs20 + "14000000 'MINF' 04000000 03000200 0600 'memory'",
		[]*trace.Record{rec(trace.KindTracerModule, func(r *trace.Record) {
			r.TracerModule = trace.TracerModule{ID: 4, Major: 2, Minor: 3, Name: "memory"}
		})},
	},
	{
		"unknown packet",
		hs20 + "'XYZW' 04000000 61626364",
		[]*trace.Record{rec(trace.KindOpaque, func(r *trace.Record) {
			r.Opaque = trace.Opaque{Format: "sp-rtrace", ID: 0x575a5958, Data: []byte("abcd")}
		})},
	},
	{
		"unknown packet, big-endian with letters in order",
		hs20s390 + "'MINF' 00000010 00000000 00010000 0006 'memory'" + "'XYZW' 00000004 61626364",
		[]*trace.Record{
			rec(trace.KindTracerModule, func(r *trace.Record) { r.TracerModule = trace.TracerModule{Major: 1, Name: "memory"} }),
			rec(trace.KindOpaque, func(r *trace.Record) {
				r.Opaque = trace.Opaque{Format: "sp-rtrace", ID: 0x575a5958, Data: []byte("abcd")}
			}),
		},
	},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			data := unhex(t, v.hex)
			_, recs, err := load(t, data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(recs) == 0 || recs[0].Kind != trace.KindHeader {
				t.Fatalf("no header first in %d records", len(recs))
			}
			got := make([]*trace.Record, 0, len(recs))
			for _, r := range recs[1:] {
				p := payload(r)
				if p.Call.Stack.Frames != nil && len(p.Call.Stack.Frames) == 0 {
					p.Call.Stack.Frames = nil
				}
				got = append(got, p)
			}
			if diff := cmp.Diff(v.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkTwin(t, data)
		})
	}
}

func TestHeader(t *testing.T) {
	tests := []struct {
		name, hex string
		want      trace.Header
	}{
		{"2.0", hs20, trace.Header{Version: "2.0", Arch: "x86_64", PointerSize: 8}},
		{"32 bit", hs20i, trace.Header{Version: "2.0", Arch: "i686", PointerSize: 4}},
		{"big-endian", hs20s390, trace.Header{Version: "2.0", Arch: "s390x", PointerSize: 8, BigEndian: true}},
		{"1.4", hs14, trace.Header{Version: "1.4", Arch: "x86_64", PointerSize: 8}},
		{"1.0", hs10, trace.Header{Version: "1.0", Arch: "arm", PointerSize: 4}},
		{"no name", "f0 06 02 00 00 00 08 00", trace.Header{Version: "2.0", PointerSize: 8}},
		{
			"says big, is little", hs20s390 + "'MINF' 10000000 04000000 03000200 0600 'memory'",
			trace.Header{Version: "2.0", Arch: "s390x", PointerSize: 8},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Format, tt.want.Clock = "sp-rtrace", trace.ClockDay
			_, recs, err := load(t, unhex(t, tt.hex), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, recs[0].Header); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
