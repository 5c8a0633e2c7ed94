package swap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/swap"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// message returns the bytes of a message.
func message(id, seq uint32, payload ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = binary.LittleEndian.AppendUint32(b, seq)
	b = binary.LittleEndian.AppendUint32(b, 1700000000)
	b = binary.LittleEndian.AppendUint32(b, 123456000)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// pack returns the bytes of numbers of 4 and 8 bytes, letters, and strings with their
// NUL.
func pack(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, v)
		case rune:
			b = append(b, byte(v))
		case string:
			b = append(append(b, v...), 0)
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return b
}

func read(t testing.TB, data []byte, o swap.Options) ([]*trace.Record, swap.Stats, error) {
	t.Helper()
	d, err := swap.NewReader(bytes.NewReader(data), o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.Load(d)
	return all, d.Stats(), err
}

// blocks returns the blocks that are live at the end of the records, and the number of
// frees of unknown blocks. It ignores objects other than memory.
func blocks(all []*trace.Record) (live map[uint64]uint64, unmatched int) {
	live = map[uint64]uint64{}
	for _, r := range all {
		if r.Kind != trace.KindCall || r.Call.Resource != 1 {
			continue
		}
		c := &r.Call
		if old := map[trace.Op]uint64{trace.OpFree: c.ID, trace.OpMove: c.OldID}[c.Op]; old != 0 {
			if _, ok := live[old]; !ok {
				unmatched++
			}
			delete(live, old)
		}
		if c.Op != trace.OpFree {
			live[c.ID] = c.Size
		}
	}
	return live, unmatched
}

// The session of the corpus ends as its JSON describes.
func TestSession(t *testing.T) {
	all, stats, err := read(t, contents(t, corpus+"/stream_session.bin"), swap.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	live, unmatched := blocks(all)
	want := map[uint64]uint64{0x558100003000: 64, 0x558100002000: 256, 0x558100004000: 24}
	if d := cmp.Diff(want, live); d != "" || unmatched != 0 {
		t.Errorf("%d unmatched; live (-want +got):\n%s", unmatched, d)
	}
	if stats.Lost != 0 || stats.Damaged != 0 || stats.Messages != 27 || stats.Calls != 10 || stats.Unknown != 1 {
		t.Errorf("%+v", stats)
	}
	kinds := map[trace.Kind]int{}
	var objects []string
	for _, r := range all {
		kinds[r.Kind]++
		if c := &r.Call; r.Kind == trace.KindCall && c.Resource != 1 {
			objects = append(objects, fmt.Sprintf("%s %s %#x", c.Op, c.Function, c.ID))
		}
	}
	if d := cmp.Diff([]string{
		"alloc open 0x5", "alloc pthread_create 0x7f00aa0006c0", "free pthread_mutex_unlock 0x558000004040", "alloc connect 0x7",
	}, objects); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
	if kinds[trace.KindMapping] != 4 || kinds[trace.KindUnmapping] != 1 || kinds[trace.KindProcess] != 1 || kinds[trace.KindExit] != 1 {
		t.Errorf("%v", kinds)
	}
}

// Missing sequence numbers are lost messages, also where the numbers start again at 0.
// A number that goes back is not a loss.
func TestSequence(t *testing.T) {
	var data []byte
	for _, seq := range []uint32{0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF, 0, 4, 5, 2, 3} {
		data = append(data, message(wire.Error, seq, 'x', 0)...)
	}
	all, stats, err := read(t, data, swap.Options{Strict: true})
	if err != nil || stats.Lost != 3 || stats.Messages != 8 {
		t.Errorf("%v, %+v", err, stats)
	}
	lost := slices.IndexFunc(all, func(r *trace.Record) bool { return r.Kind == trace.KindLost })
	if lost < 0 || all[lost].Lost.Count != 3 || all[lost+1].Kind != trace.KindComment || lost != 6 {
		t.Errorf("lost is record %d", lost)
	}
}

// probe returns a memory probe of a function with arguments, a result and a tail.
func probe(api int, args, result, tail []byte) []byte {
	n := 0
	for b := args; len(b) > 0; n++ {
		b = b[9:]
	}
	p := slices.Concat(pack(api, 7, 8, n), args, result, pack(uint64(0), 1, uint64(0x1234), 0, 0), tail)
	return message(wire.ProbeMemory, 0, p...)
}

func TestMemoryProbes(t *testing.T) {
	x := func(v uint64) []byte { return pack('x', v) }
	p := func(v uint64) []byte { return pack('p', v) }
	tail := func(size uint64, kind int, address uint64) []byte { return pack(size, kind, address) }
	void := []byte{'v'}
	for _, tt := range []struct {
		name string
		data []byte
		want *trace.Call // nil for a message that is not a call
	}{
		{"malloc", probe(424, x(5), p(16), tail(5, 0, 16)), &trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16, Size: 5}},
		{"malloc failed", probe(424, x(5), p(0), tail(5, 0, 0)), nil},
		{"malloc, bare", probe(424, x(5), p(16), nil), &trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16, Size: 5}},
		{"malloc of Tizen 2.3", probe(68, x(5), p(16), tail(5, 0, 16)), &trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16, Size: 5}},
		{"free of Tizen 2.4", probe(497, p(16), void, tail(0, 1, 16)), &trace.Call{Op: trace.OpFree, Function: "free", ID: 16}},
		{"free, bare", probe(425, p(16), void, nil), &trace.Call{Op: trace.OpFree, Function: "free", ID: 16}},
		{"free of nothing", probe(425, p(0), void, tail(0, 1, 0)), nil},
		{"realloc moves", probe(426, slices.Concat(p(16), x(9)), p(32), tail(9, 0, 32)), &trace.Call{Op: trace.OpMove, Function: "realloc", ID: 32, OldID: 16, Size: 9}},
		{"realloc, bare", probe(426, slices.Concat(p(16), x(9)), p(32), nil), &trace.Call{Op: trace.OpMove, Function: "realloc", ID: 32, OldID: 16, Size: 9}},
		{"realloc of Tizen 2.3", probe(70, slices.Concat(p(16), x(9)), p(32), tail(9, 0, 32)), &trace.Call{Op: trace.OpMove, Function: "realloc", ID: 32, OldID: 16, Size: 9}},
		{"realloc allocates", probe(426, slices.Concat(p(0), x(9)), p(32), tail(9, 0, 32)), &trace.Call{Op: trace.OpAlloc, Function: "realloc", ID: 32, Size: 9}},
		{"realloc frees", probe(426, slices.Concat(p(16), x(0)), p(0), tail(0, 0, 0)), &trace.Call{Op: trace.OpFree, Function: "realloc", ID: 16}},
		{"realloc failed", probe(426, slices.Concat(p(16), x(9)), p(0), tail(9, 0, 0)), nil},
		{"calloc, bare", probe(427, slices.Concat(x(1), x(9)), p(32), nil), &trace.Call{Op: trace.OpAlloc, Function: "calloc", ID: 32, Size: 9}},
		{"calloc of Tizen 2.3, bare", probe(71, slices.Concat(x(1), x(9)), p(32), nil), &trace.Call{Op: trace.OpAlloc, Function: "calloc", ID: 32, Size: 9}},
		{"posix_memalign", probe(0x10000, slices.Concat(p(16), x(8), x(9)), pack('d', 0), tail(9, 0, 32)), nil},
		{"aligned_alloc, bare", probe(0x10001, slices.Concat(x(8), x(9)), p(32), nil), nil},
		{"memset", probe(413, slices.Concat(p(16), x(8), x(9)), p(16), tail(9, 2, 16)), nil},
		{"operator new", probe(420, slices.Concat(x(9), p(1)), p(16), tail(9, 0, 16)), &trace.Call{Op: trace.OpAlloc, Function: "operator new(unsigned long, std::nothrow_t const&)", ID: 16, Size: 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "posix_memalign" {
				// Its result has other bytes; the tail decides.
				tt.data = message(wire.ProbeMemory, 0, slices.Concat(pack(0x10000, 7, 8, 3), p(16), x(8), x(9), pack('d', 0), pack(uint64(0), 1, uint64(0x1234), 0, 0), tail(9, 0, 32))...)
				tt.want = &trace.Call{Op: trace.OpAlloc, Function: "posix_memalign", ID: 32, Size: 9}
			}
			all, stats, err := read(t, tt.data, swap.Options{Strict: true})
			if err != nil || stats.Damaged != 0 {
				t.Fatalf("%v, %+v", err, stats)
			}
			last := all[len(all)-1]
			if tt.want == nil {
				if last.Kind != trace.KindOpaque || !bytes.Equal(last.Opaque.Data, tt.data[20:]) || last.PID != 7 || last.TID != 8 {
					t.Errorf("%+v", last)
				}
				return
			}
			if last.Kind != trace.KindCall || last.PID != 7 || last.TID != 8 || last.Time != 1700000000123456000 {
				t.Fatalf("%+v", last)
			}
			tt.want.Seq, tt.want.Resource = 1, 1
			tt.want.Stack = trace.Stack{Frames: []uint64{0x1234}, End: trace.StackTruncated}
			if d := cmp.Diff(*tt.want, last.Call); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Names come from a table in the stream or from Options.
func TestNames(t *testing.T) {
	data := slices.Concat(message(wire.APIName, 0, pack(0x20000, "je_malloc")...),
		probe(0x20000, pack('x', uint64(5)), pack('p', uint64(16)), pack(uint64(5), 0, uint64(16))),
		probe(68, pack('x', uint64(5)), pack('p', uint64(16)), pack(uint64(5), 0, uint64(16))))
	all, _, err := read(t, data, swap.Options{APIs: map[uint32]string{68: "my_malloc"}})
	if err != nil || len(all) != 4 || all[2].Call.Function != "je_malloc" || all[3].Call.Function != "my_malloc" {
		t.Errorf("%v, %d records", err, len(all))
	}
}

// A private message gives the call before it its whole stack. Other private messages
// stay as they are.
func TestStackMessage(t *testing.T) {
	call := probe(424, pack('x', uint64(5)), pack('p', uint64(16)), pack(uint64(5), 0, uint64(16)))
	frames := pack(uint64(1), uint64(2), uint64(3))
	for _, tt := range []struct {
		name   string
		stack  []byte
		frames []uint64
		last   trace.Kind
	}{
		{"whole", message(wire.Stack, 1, slices.Concat(pack(0, 3), frames)...), []uint64{1, 2, 3}, trace.KindCall},
		{"of another", message(wire.Stack, 1, slices.Concat(pack(9, 3), frames)...), []uint64{0x1234}, trace.KindOpaque},
		{"short", message(wire.Stack, 1, slices.Concat(pack(0, 4), frames)...), []uint64{0x1234}, trace.KindOpaque},
		{"later", message(wire.Stack, 3, slices.Concat(pack(0, 3), frames)...), []uint64{0x1234}, trace.KindOpaque},
	} {
		all, stats, err := read(t, slices.Concat(call, tt.stack), swap.Options{Strict: true})
		if err != nil || stats.Messages != 2 {
			t.Fatalf("%s: %v, %+v", tt.name, err, stats)
		}
		if got := all[2].Call.Stack.Frames; !slices.Equal(got, tt.frames) || all[len(all)-1].Kind != tt.last {
			t.Errorf("%s: %v, %v", tt.name, got, all[len(all)-1].Kind)
		}
	}
}

// A message that does not parse is kept and counted, and reading continues. With strict
// reading it is an error.
func TestDamage(t *testing.T) {
	good := message(wire.Error, 1, 'x', 0)
	for name, want := range map[string]struct {
		damaged uint64
		err     error
	}{
		"bad_arg_count":           {1, nil},
		"bad_unterminated_string": {1, nil},
		"bad_length_huge":         {0, trace.ErrLimit},
		"bad_truncated_header":    {0, trace.ErrTruncated},
		"bad_truncated_payload":   {0, trace.ErrTruncated},
	} {
		data := contents(t, corpus+"/"+name+".bin")
		if want.err == nil {
			data = slices.Concat(data, good)
		}
		all, stats, err := read(t, data, swap.Options{})
		if !errors.Is(err, want.err) || stats.Damaged != want.damaged || want.err == nil && all[len(all)-1].Comment != "x" {
			t.Errorf("%s: %v, %+v", name, err, stats)
		}
		_, _, err = read(t, data, swap.Options{Strict: true})
		if want.err == nil {
			want.err = trace.ErrMalformed
		}
		if syntax, ok := errors.AsType[*trace.SyntaxError](err); !ok || syntax.Offset != 0 || !errors.Is(err, want.err) {
			t.Errorf("%s strictly: %v", name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []swap.Options{{MaxMessage: -1}, {CPUs: -1}, {Devices: 1 << 20}, {MaxMessage: 1<<30 + 1}} {
		if _, err := swap.NewReader(bytes.NewReader(nil), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if all, _, err := read(t, nil, swap.Options{}); len(all) != 0 || err != nil {
		t.Errorf("%d records, %v", len(all), err)
	}
}
