package jsonrecord_test

import (
	"testing"

	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/trace"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		r    trace.Record
		want string
	}{
		{trace.Record{Kind: trace.KindEnd}, `{"kind":"end"}`},
		{
			trace.Record{Kind: trace.KindCall, Time: 1, PID: 2, TID: 3, CPU: 4, Call: trace.Call{
				Seq: 5, Op: trace.OpMove, Function: "realloc", Resource: 1, ID: 0xabc, OldID: 0x10, Size: 1 << 33, EntryTime: 6, Context: 3,
				Stack: trace.Stack{Frames: []uint64{0, 0xffffffffffffffff}, Names: []string{"", "main"}, End: trace.StackFailed, FramePointer: true, Reason: "unmapped"},
				Args:  []trace.Arg{{Name: "a", Value: "b"}, {}},
			}},
			`{"kind":"call","time":1,"pid":2,"tid":3,"cpu":4,"seq":5,"op":"move","function":"realloc","resource":1,"id":"0xabc","old_id":"0x10",` +
				`"size":8589934592,"entry_time":6,"context":3,"stack_end":"failed","stack_reason":"unmapped","frame_pointer":true,` +
				`"stack":["0x0","0xffffffffffffffff"],"names":["","main"],"args":[{"name":"a","value":"b"},{"name":"","value":""}]}`,
		},
		{trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: 4}}, `{"kind":"call","op":4}`},
		{trace.Record{Kind: trace.KindComment, Comment: "\"\\\n\r\t\x01\x7fä\xff<"}, `{"kind":"comment","text":"\"\\\n\r\t\u0001\u007fä\udcff<"}`},
		{trace.Record{Kind: trace.KindOpaque, Opaque: trace.Opaque{Data: []byte{0x0a, 0xf0}}}, `{"kind":"opaque","data":"0af0"}`},
		{trace.Record{Kind: trace.KindProcess, Time: -1, Process: trace.Process{Depth: -1}}, `{"kind":"process","time":-1,"depth":-1}`},
		{trace.Record{Kind: trace.KindHeader, Header: trace.Header{BigEndian: true, Clock: trace.ClockDay}}, `{"kind":"header","big_endian":true,"clock":"day"}`},
		{trace.Record{Kind: trace.KindHeapInfo, HeapInfo: trace.HeapInfo{Bottom: 16, Arena: 16}}, `{"kind":"heapinfo","bottom":"0x10","arena":16}`},
	} {
		got, err := jsonrecord.Append([]byte("x"), &tt.r)
		if err != nil || string(got) != "x"+tt.want {
			t.Errorf("%v\ngot  %s\nwant x%s", err, got, tt.want)
		}
	}
}
