package swap_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/swap"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// step is a message of another writer.
type step struct {
	id, api, tid int
	args         []byte // with their count
	result       []byte
	tail         []byte
	late         uint32 // ns since the first message
}

// otherStream returns messages as writers other than rtrace make them.
func otherStream(steps ...step) (data []byte) {
	for i, s := range steps {
		p := slices.Concat(pack(s.api, 7, s.tid), s.args, s.result, pack(uint64(0), 1, uint64(0x1234), 0, 0), s.tail)
		m := message(uint32(s.id), uint32(i), p...)
		binary.LittleEndian.PutUint32(m[12:], 123456000+s.late)
		data = append(data, m...)
	}
	return data
}

var (
	none  = pack(0)
	zero  = pack('d', 0)
	minus = pack('d', -1)
)

func fileTail(fd, kind int, path string) []byte {
	return pack(uint64(0), uint64(int64(fd)), kind, uint64(12), path)
}

func syncTail(object uint64, sort, kind int) []byte { return pack(object, sort, kind) }

func threadTail(id uint64, kind int) []byte { return pack(id, uint64(0), 0, kind, "") }

func networkTail(fd, kind int, ip uint32, port int) []byte {
	return pack(uint64(0), uint64(int64(fd)), kind, int(ip), port, uint64(0))
}

// Messages of other writers become calls where they show that something was allocated
// or freed, and are otherwise kept as they are.
func TestObjectsOfOthers(t *testing.T) {
	const loopback = 0x0100007f // in network byte order
	open := func(api int, args, result []byte, fd int) step {
		return step{id: wire.ProbeFile, api: api, tid: 8, args: args, result: result, tail: fileTail(fd, wire.FileOpen, "/a")}
	}
	lock := func(tid, kind int, result []byte, late uint32) step {
		return step{id: wire.ProbeSync, api: 460, tid: tid, args: pack(1, 'p', uint64(16)), result: result, tail: syncTail(16, 3, kind), late: late}
	}
	wait := func(kind int, late uint32) step {
		return step{id: wire.ProbeSync, api: 476, tid: 8, args: pack(2, 'p', uint64(32), 'p', uint64(16)), result: zero, tail: syncTail(32, 4, kind), late: late}
	}
	join := func(kind int) step {
		return step{id: wire.ProbeThread, api: 483, tid: 8, args: pack(2, 'x', uint64(64), 'p', uint64(0)), result: zero, tail: threadTail(64, kind)}
	}
	const kept = "message"
	for _, tt := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"open", []step{open(107, pack(3, 's', "/a", 'd', 2, 'd', 0), pack('d', 5), 5)}, []string{"alloc open fd 0x5 1 path=/a flags=0x2"}},
		{"a failed open", []step{open(107, pack(3, 's', "/a", 'd', 2, 'd', 0), minus, -1)}, []string{kept}},
		{"fopen", []step{open(66, pack(2, 's', "/a", 's', "r"), pack('p', uint64(0x5500)), 3)}, []string{"alloc fopen fp 0x5500 1 path=/a mode=r"}},
		{"a failed fopen", []step{open(66, pack(2, 's', "/a", 's', "r"), pack('p', uint64(0)), -1)}, []string{kept}},
		{
			"fclose",
			[]step{{id: wire.ProbeFile, api: 58, tid: 8, args: pack(1, 'p', uint64(0x5500)), result: minus, tail: fileTail(3, wire.FileClose, "")}},
			[]string{"free fclose fp 0x5500 0"},
		},
		{"read", []step{{id: wire.ProbeFile, api: 111, tid: 8, args: none, result: pack('x', uint64(4)), tail: fileTail(3, 3, "")}}, []string{kept}},
		{"a function without a name", []step{open(5000, none, pack('d', 5), 5)}, []string{kept}},
		{"a message without its tail", []step{{id: wire.ProbeFile, api: 107, tid: 8, args: none, result: pack('d', 5)}}, []string{kept}},
		{
			"connect",
			[]step{{id: wire.ProbeNetwork, api: 431, tid: 8, args: pack(3, 'd', 5, 'p', uint64(1), 'd', 16), result: zero, tail: networkTail(5, wire.NetworkConnect, loopback, 8080)}},
			[]string{"alloc connect fd 0x5 1 family=AF_INET address:port=127.0.0.1:8080"},
		},
		{"send", []step{{id: wire.ProbeNetwork, api: 449, tid: 8, args: none, result: pack('x', uint64(3)), tail: append(networkTail(5, 5, 0, 0), "abc"...)}}, []string{kept}},
		{"a lock that was waited for", []step{lock(8, 1, zero, 0), lock(8, 2, zero, 9)}, []string{"alloc pthread_mutex_lock mutex 0x10 9"}},
		{
			"two at a time",
			[]step{lock(8, 1, zero, 0), lock(9, 1, zero, 2), lock(8, 2, zero, 9), lock(9, 2, zero, 10)},
			[]string{kept, kept, "alloc pthread_mutex_lock mutex 0x10 9", "alloc pthread_mutex_lock mutex 0x10 8"},
		},
		{"a lock that failed", []step{lock(8, 1, zero, 0), lock(8, 2, pack('d', 35), 9)}, []string{kept, kept}},
		{"a lock that was not got", []step{lock(8, 1, zero, 0)}, []string{kept}},
		{"an end alone", []step{lock(8, 2, zero, 9)}, []string{"alloc pthread_mutex_lock mutex 0x10 0"}},
		{"a condition", []step{wait(5, 0), wait(6, 4)}, []string{"alloc pthread_cond_wait condition 0x20 4", "free pthread_cond_wait condition 0x20 0"}},
		{"a join", []step{join(4), join(5)}, []string{"free pthread_join thread 0x40 0"}},
		{"a thread of Tizen", []step{{id: wire.ProbeThread, api: 5000, tid: 8, args: none, result: zero, tail: threadTail(64, 1)}}, []string{kept}},
		{"a monitor", []step{{id: wire.ProbeSync, api: 460, tid: 8, args: none, result: zero, tail: syncTail(16, 1, 2)}}, []string{kept}},
	} {
		all, stats, err := read(t, otherStream(tt.steps...), swap.Options{Strict: true})
		if err != nil || int(stats.Messages) != len(tt.steps) {
			t.Errorf("%s: %v, %+v", tt.name, err, stats)
		}
		types := map[uint32]string{}
		var got []string
		for _, r := range all {
			switch r.Kind {
			case trace.KindResource:
				types[r.Resource.ID] = r.Resource.Type
			case trace.KindOpaque:
				got = append(got, kept)
			case trace.KindCall:
				c := &r.Call
				line := fmt.Sprintf("%s %s %s %#x %d", c.Op, c.Function, types[c.Resource], c.ID, c.Size)
				for _, a := range c.Args {
					line += " " + a.Name + "=" + a.Value
				}
				got = append(got, line)
				if r.PID != 7 || len(c.Stack.Frames) != 1 || c.Stack.Frames[0] != 0x1234 {
					t.Errorf("%s: process %d, stack %x", tt.name, r.PID, c.Stack.Frames)
				}
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// A message for the start of a call is kept whole even if reading the next message
// moves the buffer.
func TestObjectAtTheBorder(t *testing.T) {
	pad := message(wire.Error, 0, slices.Concat(slices.Repeat([]byte{'x'}, 65400), []byte{0})...)
	start := otherStream(step{id: wire.ProbeSync, api: 460, tid: 8, args: pack(1, 'p', uint64(16)), result: zero, tail: syncTail(16, 3, 1)})
	want := slices.Clone(start[wire.HeaderSize:])
	data := slices.Concat(pad, start, message(wire.Error, 2, slices.Concat(slices.Repeat([]byte{'y'}, 65400), []byte{0})...))
	binary.LittleEndian.PutUint32(data[len(pad)+4:], 1)
	all, _, err := read(t, data, swap.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(r *trace.Record) bool { return r.Kind == trace.KindOpaque })
	if at < 0 || !slices.Equal(all[at].Opaque.Data, want) || all[at].TID != 8 {
		t.Fatalf("record %d is not the message", at)
	}
}
