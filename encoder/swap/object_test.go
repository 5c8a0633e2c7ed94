package swap_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	decoder "rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// objectResources are the resources of the modules that have messages, one that has
// none, and memory.
var objectResources = []string{"memory", "fd", "fp", "thread", "mutex", "rwlock", "condition", "semaphore", "mmap"}

// objectTrace returns a trace of calls. From the 7th on, their times are a second apart.
func objectTrace(calls ...trace.Call) []trace.Record {
	all := []trace.Record{{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockWall}}}
	for i, name := range objectResources {
		all = append(all, trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: uint32(i + 1), Type: name}})
	}
	for i, c := range calls {
		all = append(all, trace.Record{Kind: trace.KindCall, Time: (1_700_000_007 + int64(i)) * second, PID: 7, TID: 8, Call: c})
	}
	return all
}

func objectCall(op trace.Op, function, resource string, id, size uint64, args ...string) trace.Call {
	c := trace.Call{Op: op, Function: function, Resource: uint32(slices.Index(objectResources, resource) + 1), ID: id, Size: size}
	for i := 0; i < len(args); i += 2 {
		c.Args = append(c.Args, trace.Arg{Name: args[i], Value: args[i+1]})
	}
	return c
}

// readCalls returns the calls of a stream, with the types of their resources in place
// of their numbers.
func readCalls(t *testing.T, data []byte) (calls []trace.Record) {
	t.Helper()
	r, err := decoder.NewReader(bytes.NewReader(data), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	types := map[uint32]string{}
	for _, r := range all {
		switch r.Kind {
		case trace.KindResource:
			types[r.Resource.ID] = r.Resource.Type
		case trace.KindCall:
			c := *r
			c.Call.Resource = uint32(slices.Index(objectResources, types[c.Call.Resource]) + 1)
			c.Resource, c.Header = trace.Resource{}, trace.Header{}
			calls = append(calls, c)
		case trace.KindOpaque:
			t.Errorf("message %#x at %d is no call", r.Opaque.ID, r.Time)
		}
	}
	return calls
}

// Each call of the modules file, thread and lock has the messages that the document
// specifies for it, and is read back unchanged.
func TestObjects(t *testing.T) {
	const alloc, free = trace.OpAlloc, trace.OpFree
	const common = " errno=0 call_type=1 caller=0xbadbeef reserved1=0 reserved2=0 "
	file := func(api, args, result, tail string) string {
		return "PROBE_FILE api_id=" + api + " pid=7 tid=8 args=[" + args + "] return=" + result + common + "file.size=0 file." + tail
	}
	network := func(api, args, result, tail string) string {
		return "PROBE_NETWORK api_id=" + api + " pid=7 tid=8 args=[" + args + "] return=" + result + common + "network.object=0x0 network." + tail + " network.total_size=0 network.data="
	}
	const nowhere = " network.ip=0.0.0.0 network.port=0"
	thread := func(api, args, kind string) string {
		return "PROBE_THREAD api_id=" + api + " pid=7 tid=8 args=[" + args + "] return=d:0" + common +
			"thread.pthread_id=0x7f10 thread.tizen_thread_id=0x0 thread.thread_type=0 thread.api_type=" + kind + ` thread.class_name=""`
	}
	sync := func(api, args, tail string) string {
		return "PROBE_SYNC api_id=" + api + " pid=7 tid=8 args=[" + args + "] return=d:0" + common + "sync.object=" + tail
	}
	name := func(api, function string) string { return "API_NAME api_id=" + api + ` name="` + function + `"` }
	for _, tt := range []struct {
		name     string
		call     trace.Call
		messages []string
		before   []trace.Call // that precede the call
	}{
		{"open", objectCall(alloc, "open", "fd", 0, 1, "path", "a b", "flags", "0x80002"), []string{
			file("107", `s:"a b" d:524290`, "d:0", `fd=0 file.api_type=0 file.file_size=0 file.path="a b"`),
		}, nil},
		{"openat", objectCall(alloc, "openat", "fd", 3, 1, "path", "x", "flags", "0x0"), []string{
			file("108", `n s:"x" d:0`, "d:3", `fd=3 file.api_type=0 file.file_size=0 file.path="x"`),
		}, nil},
		{"a path that was not in memory", objectCall(alloc, "creat", "fd", 3, 1, "mode", "0x1a4"), []string{
			file("95", `n d:420`, "d:3", `fd=3 file.api_type=0 file.file_size=0 file.path=""`),
		}, nil},
		{"close", objectCall(free, "close", "fd", 3, 0), []string{
			file("94", `d:3`, "d:0", `fd=3 file.api_type=1 file.file_size=0 file.path=""`),
		}, nil},
		{"dup", objectCall(alloc, "dup", "fd", 4, 1, "oldfd", "3", "type", "(unknown)"), []string{
			file("96", `d:3 s:"type=(unknown)"`, "d:4", `fd=4 file.api_type=0 file.file_size=0 file.path=""`),
		}, nil},
		{"what dup2 closes", objectCall(free, "dup2", "fd", 4, 0), []string{
			file("97", `d:4`, "d:0", `fd=4 file.api_type=1 file.file_size=0 file.path=""`),
		}, nil},
		{"dup2", objectCall(alloc, "dup2", "fd", 4, 1, "oldfd", "3"), []string{
			file("97", `d:3 d:4`, "d:4", `fd=4 file.api_type=0 file.file_size=0 file.path=""`),
		}, nil},
		{"pipe2", objectCall(alloc, "pipe2", "fd", 6, 1, "flags", "0x800"), []string{
			name("131072", "pipe2"), file("131072", `n d:2048`, "d:0", `fd=6 file.api_type=0 file.file_size=0 file.path=""`),
		}, nil},
		{"recvmsg", objectCall(alloc, "recvmsg", "fd", 6, 1, "sockfd", "5"), []string{
			name("131072", "recvmsg"), file("131072", `d:5`, "n", `fd=6 file.api_type=0 file.file_size=0 file.path=""`),
		}, nil},
		{"fopen", objectCall(alloc, "fopen", "fp", 0x5500, 1, "path", "x", "mode", "r"), []string{
			file("66", `s:"x" s:"r"`, "p:0x5500", `fd=-1 file.api_type=0 file.file_size=0 file.path="x"`),
		}, nil},
		{"fclose", objectCall(free, "fclose", "fp", 0x5500, 0), []string{
			file("58", `p:0x5500`, "d:0", `fd=-1 file.api_type=1 file.file_size=0 file.path=""`),
		}, nil},
		{"what fdopen takes", objectCall(free, "fdopen", "fd", 3, 0), []string{
			name("131072", "fdopen"), file("131072", `d:3`, "d:0", `fd=3 file.api_type=8 file.file_size=0 file.path=""`),
		}, nil},
		{"fdopen", objectCall(alloc, "fdopen", "fp", 0x5500, 1, "fd", "3", "mode", "w"), []string{
			name("131072", "fdopen"), file("131072", `d:3 s:"w"`, "p:0x5500", `fd=-1 file.api_type=0 file.file_size=0 file.path=""`),
		}, nil},
		{"socket", objectCall(alloc, "socket", "fd", 5, 1, "domain", "0x2", "type", "0x1", "protocol", "0x0"), []string{
			network("455", `d:2 d:1 d:0`, "d:5", "fd=5 network.api_type=0"+nowhere),
		}, nil},
		{"what bind ends", objectCall(free, "bind", "fd", 5, 0), []string{
			network("430", `d:5`, "d:0", "fd=5 network.api_type=13"+nowhere),
		}, nil},
		{"bind", objectCall(alloc, "bind", "fd", 5, 1, "family", "AF_INET", "address:port", "127.0.0.1:8080"), []string{
			network("430", `d:5 n n s:"family=AF_INET" s:"address:port=127.0.0.1:8080"`, "d:0", "fd=5 network.api_type=6 network.ip=127.0.0.1 network.port=8080"),
		}, nil},
		{"connect", objectCall(alloc, "connect", "fd", 5, 1, "family", "AF_UNIX", "path", "/run/x"), []string{
			network("431", `d:5 n n s:"family=AF_UNIX" s:"path=/run/x"`, "d:0", "fd=5 network.api_type=8"+nowhere),
		}, nil},
		{"accept", objectCall(alloc, "accept", "fd", 6, 1, "sockfd", "5", "path", "/run/x"), []string{
			network("428", `d:5 n n s:"path=/run/x"`, "d:0", "fd=5 network.api_type=9"+nowhere),
			network("428", `d:5 n n s:"path=/run/x"`, "d:6", "fd=6 network.api_type=10"+nowhere),
		}, nil},
		{"close of a socket", objectCall(free, "close", "fd", 6, 0), []string{
			network("94", `d:6`, "d:0", "fd=6 network.api_type=1"+nowhere),
		}, []trace.Call{objectCall(alloc, "socket", "fd", 6, 1)}},
		{"close of a file where a socket was", objectCall(free, "close", "fd", 6, 0), []string{
			file("94", `d:6`, "d:0", `fd=6 file.api_type=1 file.file_size=0 file.path=""`),
		}, []trace.Call{objectCall(alloc, "socket", "fd", 6, 1), objectCall(free, "close", "fd", 6, 0), objectCall(alloc, "open", "fd", 6, 1)}},
		{"pthread_create", objectCall(alloc, "pthread_create", "thread", 0x7f10, 1, "start_routine", "0x401000"), []string{
			thread("482", `n n p:0x401000 n`, "1"),
		}, nil},
		{"pthread_join", objectCall(free, "pthread_join", "thread", 0x7f10, 0), []string{
			thread("483", `x:32528`, "4"), thread("483", `x:32528`, "5"),
		}, nil},
		{"pthread_detach", objectCall(free, "pthread_detach", "thread", 0x7f10, 0), []string{
			thread("486", `x:32528`, "8"),
		}, nil},
		{"pthread_mutex_lock", objectCall(alloc, "pthread_mutex_lock", "mutex", 0x5500, 250_000_000), []string{
			sync("460", `p:0x5500`, "0x5500 sync.sync_type=3 sync.api_type=1"), sync("460", `p:0x5500`, "0x5500 sync.sync_type=3 sync.api_type=2"),
		}, nil},
		{"pthread_mutex_unlock", objectCall(free, "pthread_mutex_unlock", "mutex", 0x5500, 0, "held", "12"), []string{
			sync("463", `p:0x5500 s:"held=12"`, "0x5500 sync.sync_type=3 sync.api_type=3"),
		}, nil},
		{"pthread_rwlock_tryrdlock", objectCall(alloc, "pthread_rwlock_tryrdlock", "rwlock", 0x5500, 0), []string{
			name("131072", "pthread_rwlock_tryrdlock"), sync("131072", `p:0x5500`, "0x5500 sync.sync_type=5 sync.api_type=4"),
		}, nil},
		{"sem_wait", objectCall(alloc, "sem_wait", "semaphore", 0x5500, 3_000_000_001), []string{
			sync("65794", `p:0x5500`, "0x5500 sync.sync_type=2 sync.api_type=1"), sync("65794", `p:0x5500`, "0x5500 sync.sync_type=2 sync.api_type=2"),
		}, nil},
		{"sem_post", objectCall(free, "sem_post", "semaphore", 0x5500, 0), []string{
			sync("65795", `p:0x5500`, "0x5500 sync.sync_type=2 sync.api_type=3"),
		}, nil},
		{"pthread_cond_wait", objectCall(free, "pthread_cond_wait", "condition", 0x5500, 0), []string{
			sync("476", `p:0x5500`, "0x5500 sync.sync_type=4 sync.api_type=5"), sync("476", `p:0x5500`, "0x5500 sync.sync_type=4 sync.api_type=6"),
			sync("476", `p:0x5500`, "0x5500 sync.sync_type=4 sync.api_type=9"),
		}, []trace.Call{objectCall(alloc, "pthread_cond_wait", "condition", 0x5500, 77)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			records := objectTrace(append(slices.Clone(tt.before), tt.call)...)
			data, w := write(t, swap.Options{}, records...)
			var got []string
			for _, line := range dump(t, data) {
				got = append(got, stamp.ReplaceAllString(line, ""))
			}
			if len(got) < len(tt.messages) {
				t.Fatalf("messages: %q", got)
			}
			if d := cmp.Diff(tt.messages, got[len(got)-len(tt.messages):]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(w.Stats().Remarks()) > 0 {
				t.Errorf("%q", w.Stats().Remarks())
			}
			compareCalls(t, records, readCalls(t, data))
		})
	}
}

// compareCalls checks that calls were read back unchanged.
func compareCalls(t *testing.T, records, got []trace.Record) {
	t.Helper()
	positions, n := swap.Positions(), 0
	var want []trace.Record
	for _, r := range records {
		n += positions(&r)
		if r.Kind == trace.KindCall {
			r.Call.Seq = uint64(len(want) + 1)
			want = append(want, r)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
	if n != len(got) {
		t.Errorf("%d positions for %d calls", n, len(got))
	}
}
