package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// extremeRecord is a record of jsonl. Numbers are texts, because some are too large for a
// reader of JSON.
type extremeRecord struct {
	kind string
	keys map[string]any
}

// extremeCall is a call of a trace with numbers at their limits.
type extremeCall struct {
	op             string
	time           int64
	id, size       uint64
	tid            int64
	seq            uint64
	old, entryTime uint64
	stack          []uint64
	more           map[string]any
}

func (c extremeCall) record(n int) extremeRecord {
	hex := func(v uint64) string { return fmt.Sprintf("%#x", v) }
	if c.stack == nil {
		c.stack = []uint64{0x401010, 0x401020}
	}
	if c.tid == 0 {
		c.tid = 8
	}
	if c.seq == 0 {
		c.seq = uint64(n + 1)
	}
	function := map[string]string{"alloc": "malloc", "free": "free", "move": "realloc"}[c.op]
	keys := map[string]any{
		"time": c.time, "pid": 7, "tid": c.tid, "seq": c.seq, "op": c.op, "function": function, "resource": 1,
		"id": hex(c.id), "size": c.size, "stack_end": "complete",
	}
	var stack []string
	for _, frame := range c.stack {
		stack = append(stack, hex(frame))
	}
	keys["stack"] = stack
	if c.op == "move" {
		keys["old_id"], keys["entry_time"] = hex(c.old), c.entryTime
	}
	maps.Copy(keys, c.more)
	return extremeRecord{"call", keys}
}

// extremeTrace returns the text of a trace.
func extremeTrace(t *testing.T, clock string, records ...extremeRecord) []byte {
	t.Helper()
	begin := []extremeRecord{
		{"header", map[string]any{"arch": "x86_64", "pointer_size": 8, "clock": clock}},
		{"process", map[string]any{"pid": 7, "name": "prog", "path": "/nonesuch/prog"}},
		{"resource", map[string]any{"pid": 7, "id": 1, "type": "memory"}},
		{"context", map[string]any{"pid": 7, "id": 1, "name": "phase"}},
		{"attachment", map[string]any{"pid": 7, "name": "maps", "path": "maps"}},
	}
	text := []byte(`{"format":"rtrace-jsonl","version":1}` + "\n")
	for _, r := range append(begin, records...) {
		keys := maps.Clone(r.keys)
		keys["kind"] = r.kind
		line, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	return text
}

// extremeTraces are small traces whose numbers are at their limits.
func extremeTraces(t *testing.T) map[string][]byte {
	const last, first = math.MaxInt64, math.MinInt64
	traces := make(map[string][]byte)
	add := func(name, clock string, calls ...extremeCall) {
		var records []extremeRecord
		for n, c := range calls {
			records = append(records, c.record(n))
		}
		traces[name] = extremeTrace(t, clock, records...)
	}
	for name, times := range map[string][]int64{
		"last": {1, last}, "first and last": {first, last}, "first": {first, first + 1, -1}, "none": {0, 0, 0}, "backwards": {last, 1, 2, first},
		"near the last": {last - 3, last - 2, last - 1, last}, "far": {1, 1 << 62, last - 1}, "negative": {-3, -2, -1}, "around zero": {-1, 1},
	} {
		clocks := []string{"monotonic"}
		if slices.Contains(times, last) {
			clocks = append(clocks, "day", "wall")
		}
		for _, clock := range clocks {
			var calls []extremeCall
			for n, at := range times {
				calls = append(calls, extremeCall{op: "alloc", time: at, id: uint64(n+1) << 12, size: 16})
			}
			calls = append(calls, extremeCall{op: "free", time: times[len(times)-1], id: 1 << 12})
			add("times "+name+" "+clock, clock, calls...)
		}
	}
	const now = int64(1e9)
	for name, sizes := range map[string][]uint64{
		"largest": {math.MaxUint64, math.MaxUint64}, "2^63": {1 << 63, 1 << 63, 1 << 63}, "2^63-1": {math.MaxInt64, 1, 2}, "none": {0, 0}, "mixed": {0, 1, math.MaxUint64, 1 << 62, 7},
	} {
		var calls []extremeCall
		for n, size := range sizes {
			calls = append(calls, extremeCall{op: "alloc", time: now + int64(n), id: uint64(n+1) << 12, size: size})
		}
		calls = append(calls, extremeCall{op: "free", time: now * 2, id: 1 << 12}, extremeCall{op: "move", time: now * 3, id: 9 << 12, old: 2 << 12, size: sizes[0], entryTime: uint64(now)})
		add("sizes "+name, "monotonic", calls...)
	}
	for name, ids := range map[string][]uint64{
		"ends": {0, math.MaxUint64}, "near the end": {math.MaxUint64 - 15, math.MaxUint64 - 4096}, "middle": {1 << 63, math.MaxInt64}, "everywhere": {1, 1 << 20, 1 << 32, 1 << 47, 1 << 63, math.MaxUint64 - 1},
	} {
		for _, size := range []uint64{1, 4096, 1 << 40, math.MaxUint64} {
			var calls []extremeCall
			for n, id := range ids {
				calls = append(calls, extremeCall{op: "alloc", time: now + int64(n), id: id, size: size})
			}
			calls = append(calls, extremeCall{op: "move", time: now * 2, id: ids[1], old: ids[0], size: size, entryTime: math.MaxInt64}, extremeCall{op: "free", time: now * 3, id: ids[1]})
			add(fmt.Sprintf("addresses %s, size %d", name, size), "monotonic", calls...)
		}
	}
	add("threads", "monotonic",
		extremeCall{op: "alloc", time: now, id: 1 << 12, size: 16, tid: math.MaxInt32}, extremeCall{op: "alloc", time: now, id: 2 << 12, size: 16, tid: math.MinInt32},
		extremeCall{op: "alloc", time: now, id: 3 << 12, size: 16, tid: -1, more: map[string]any{"thread": uint64(math.MaxUint64), "cpu": math.MaxInt32}})
	add("numbers of calls", "monotonic",
		extremeCall{op: "alloc", time: now, id: 1 << 12, size: 16, seq: math.MaxUint64}, extremeCall{op: "alloc", time: now, id: 2 << 12, size: 16, seq: 1 << 63},
		extremeCall{op: "free", time: now, id: 1 << 12, seq: math.MaxUint64}, extremeCall{op: "alloc", time: now, id: 3 << 12, size: 1, seq: math.MaxInt64, more: map[string]any{"index": uint64(math.MaxUint64), "context": uint32(math.MaxUint32), "line": math.MaxInt32}})
	add("frames", "monotonic",
		extremeCall{op: "alloc", time: now, id: 1 << 12, size: 16, stack: []uint64{math.MaxUint64, 0, 1 << 63}}, extremeCall{op: "alloc", time: now, id: 2 << 12, size: 16, stack: []uint64{math.MaxUint64, math.MaxUint64}},
		extremeCall{op: "alloc", time: now, id: 3 << 12, size: 16, stack: []uint64{0}})
	area := func(kind, start, end, offset string) extremeRecord {
		return extremeRecord{kind, map[string]any{"time": now, "pid": 7, "path": "/nonesuch/prog", "start": start, "end": end, "offset": offset}}
	}
	const high = "0xffffffffffffffff"
	call := func(n int, id uint64) extremeRecord {
		return extremeCall{op: "alloc", time: now + int64(n), id: id, size: 4096}.record(n)
	}
	other := func(kind string, keys map[string]any) extremeRecord {
		keys["time"], keys["pid"] = now, 7
		return extremeRecord{kind, keys}
	}
	traces["mappings"] = extremeTrace(t, "monotonic",
		area("mapping", "0x0", high, "0x0"), area("mapping", high, "0x0", high), call(0, 1<<12), area("mapping", "0x8000000000000000", "0x7fffffffffffffff", "0x0"),
		call(1, math.MaxUint64), area("unmapping", "0x0", high, "0x0"), area("mapping", "0x400000", high, high), call(2, 2<<12))
	traces["growth"] = extremeTrace(t, "monotonic",
		other("heapgrow", map[string]any{"address": "0x0", "size": uint64(math.MaxUint64)}), other("heapgrow", map[string]any{"address": high, "size": uint64(math.MaxUint64)}), call(0, 1<<12),
		other("heapgrow", map[string]any{"address": "0x8000000000000000", "size": uint64(1 << 63)}), other("heapgrow", map[string]any{"address": "0x1000", "size": 4096, "internal": true}), call(1, 1<<63))
	for name, heap := range map[string][2]string{"whole": {"0x0", high}, "turned": {high, "0x0"}, "at the end": {high, high}} {
		keys := map[string]any{"bottom": heap[0], "top": heap[1]}
		for _, key := range []string{"arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"} {
			keys[key] = uint64(math.MaxUint64)
		}
		traces["heap "+name] = extremeTrace(t, "monotonic", call(0, 1<<12), call(1, math.MaxUint64-4095), other("heapinfo", keys))
	}
	traces["losses"] = extremeTrace(t, "monotonic",
		call(0, 1<<12), other("lost", map[string]any{"count": uint64(math.MaxUint64), "reason": "ring full", "since": int64(math.MaxInt64)}),
		other("lost", map[string]any{"count": uint64(math.MaxUint64), "reason": "ring full", "since": int64(math.MinInt64)}), call(1, 2<<12))
	traces["samples"] = extremeTrace(t, "monotonic",
		other("sample", map[string]any{"name": "cpu", "weight": uint64(math.MaxUint64), "stack": []string{high}, "stack_end": "complete"}),
		other("sample", map[string]any{"name": "cpu", "weight": uint64(math.MaxUint64), "stack": []string{high}, "stack_end": "complete"}),
		other("function", map[string]any{"name": "f()", "start": "0x0", "end": high}), other("function", map[string]any{"name": "g()", "start": high, "end": "0x0"}), call(0, 1<<12),
		other("event", map[string]any{"provider": "p", "name": "e", "id": math.MaxUint32}))
	counted := other("resource", map[string]any{"id": math.MaxInt32, "type": "file", "refcount": true})
	sampled := other("resource", map[string]any{"id": 2, "type": "sampled", "sampled": true})
	traces["resources"] = extremeTrace(t, "monotonic", counted, sampled, other("resource", map[string]any{"id": uint32(math.MaxUint32), "type": "x"}),
		extremeCall{op: "alloc", time: now, id: 1, size: math.MaxUint64, more: map[string]any{"resource": math.MaxInt32}}.record(0),
		extremeCall{op: "alloc", time: now, id: 1, size: math.MaxUint64, more: map[string]any{"resource": 2}}.record(1),
		extremeCall{op: "alloc", time: now, id: 1, size: math.MaxUint64, more: map[string]any{"resource": 2}}.record(2))
	return traces
}
