package swap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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

// pack returns numbers of 4 and 8 bytes, letters, and strings with their NUL.
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

// blocks returns what is live at the end of records, and how many frees were of
// unknown blocks.
func blocks(all []*trace.Record) (live map[uint64]uint64, unmatched int) {
	live = map[uint64]uint64{}
	for _, r := range all {
		if r.Kind != trace.KindCall {
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

// The session of the corpus ends as its JSON says.
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
	if stats.Lost != 0 || stats.Damaged != 0 || stats.Messages != 27 || stats.Calls != 6 || stats.Unknown != 1 {
		t.Errorf("%+v", stats)
	}
	kinds := map[trace.Kind]int{}
	for _, r := range all {
		kinds[r.Kind]++
	}
	if kinds[trace.KindMapping] != 4 || kinds[trace.KindUnmapping] != 1 || kinds[trace.KindProcess] != 1 || kinds[trace.KindExit] != 1 {
		t.Errorf("%v", kinds)
	}
}

// Numbers that are missing are lost messages, also where they begin again at 0. One
// that goes back is no loss.
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
		want *trace.Call // nil for a message that is no call
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
				// Its result has other bytes; what counts is the tail.
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

// Names come from a table of the stream or from outside.
func TestNames(t *testing.T) {
	data := slices.Concat(message(wire.APIName, 0, pack(0x20000, "je_malloc")...),
		probe(0x20000, pack('x', uint64(5)), pack('p', uint64(16)), pack(uint64(5), 0, uint64(16))),
		probe(68, pack('x', uint64(5)), pack('p', uint64(16)), pack(uint64(5), 0, uint64(16))))
	all, _, err := read(t, data, swap.Options{APIs: map[uint32]string{68: "my_malloc"}})
	if err != nil || len(all) != 4 || all[2].Call.Function != "je_malloc" || all[3].Call.Function != "my_malloc" {
		t.Errorf("%v, %d records", err, len(all))
	}
}

// A private message gives the call before it its whole stack; others stay as they are.
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

// A message that does not parse is kept and counted, and the next one is read. When
// reading strictly it is an error.
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

// Lists of open files are told apart by what is in them.
func TestStatusLayouts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p, err := swap.NewParser(swap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var f swap.Fields
	for i := range 30_000 {
		layout := i % 3
		n := 1 + random.IntN(4)
		b := pack(random.IntN(1<<22), n)
		for range n {
			b = append(b, pack(random.IntN(1024))...)
			if layout == 0 {
				b = append(b, pack(random.IntN(1<<22))...)
			}
			path := "/"
			for range random.IntN(20) {
				path += string(rune('a' + random.IntN(26)))
			}
			b = append(b, pack(random.Uint64N(1<<uint(1+random.IntN(40))), path)...)
		}
		if layout == wire.StatusKernel42 {
			sockets := random.IntN(3)
			b = append(b, pack(sockets)...)
			for range sockets {
				b = append(b, pack(random.IntN(1024), int(random.Uint32()), random.IntN(65536))...)
			}
		}
		m := swap.Message{ID: wire.ProcessStatusInfo, Data: b}
		if err := p.Parse(&m, &f); err != nil || f.Layout != &f.Message.Layouts[layout] || len(f.Tail) != 0 {
			t.Fatalf("%d: %v, layout %v of %x, want %d", i, err, f.Layout, b, layout)
		}
	}
}

// The old forms of messages are read, too.
func TestOldForms(t *testing.T) {
	p, err := swap.NewParser(swap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		id     uint32
		data   []byte
		layout string
		values int
	}{
		{wire.Terminate, pack(7), "new", 1},
		{wire.Terminate, pack(1, 7), "old", 2},
		{wire.WebSampling, slices.Concat([]byte{0}, pack(7, 8, 42, "f", "u")), "sampling", 6},
		{wire.WebSampling, pack(7, 8, 42, "f", "u"), "entry", 5},
		{wire.WebSampling, pack(0x700, 8, 42, "f", "u"), "entry", 5},
		{wire.WebFunctionExit, pack(7, 8, "f"), "", 3},
		{wire.WebAppSetupStage, pack(7, 2, 9), "", 3},
		{wire.FileFunctionEntry, pack(7, 8, 3, 14, "/x", 2, 1, 0, uint64(0), uint64(1)), "", 10},
	} {
		var f swap.Fields
		m := swap.Message{ID: tt.id, Data: tt.data}
		if err := p.Parse(&m, &f); err != nil || f.Layout.Name != tt.layout || len(f.Values) != tt.values || len(f.Tail) != 0 {
			t.Errorf("%s %x: %v, %+v", f.Message.Name, tt.data, err, f)
		}
	}
}

// Times lie in either order; the half that is no number of nanoseconds is the seconds.
func TestTimeOrder(t *testing.T) {
	data := message(wire.AppSetupStage, 5, pack(7, 2, 1000, 1700000001, 2000, 1700000002)...)
	copy(data[8:], pack(123456000, 1700000000))
	all, stats, err := read(t, data, swap.Options{Strict: true})
	if err != nil || stats.Version != "4.1, nanoseconds first" {
		t.Fatalf("%v, %+v", err, stats)
	}
	last := all[len(all)-1]
	if last.Time != 1700000000123456000 || !bytes.Equal(last.Opaque.Data, pack(7, 2, 1700000001, 1000, 1700000002, 2000)) {
		t.Errorf("%+v", last)
	}
	var text, back bytes.Buffer
	if _, err := swap.Dump(&text, bytes.NewReader(data), swap.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := swap.Undump(&back, &text); err != nil || !bytes.Equal(back.Bytes(), data) {
		t.Errorf("%v: %x, want %x", err, back.Bytes(), data)
	}
}

// The daemon declares more bytes of SYSTEM than it fills, and does not say how many
// processors there are.
func TestSystem(t *testing.T) {
	s, err := swap.NewScanner(bytes.NewReader(contents(t, corpus+"/system_2cpu.bin")), swap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var m swap.Message
	if err := s.Next(&m); err != nil {
		t.Fatal(err)
	}
	for _, o := range []swap.Options{{}, {CPUs: 2}, {CPUs: 2, Devices: 5}} {
		p, err := swap.NewParser(o)
		if err != nil {
			t.Fatal(err)
		}
		var f swap.Fields
		if err := p.Parse(&m, &f); err != nil || f.Values[0].Num != 2 || len(f.Tail) != 0 {
			t.Errorf("%+v: %v, %d processors, %d bytes left", o, err, f.Values[0].Num, len(f.Tail))
		}
		long := swap.Message{ID: m.ID, Data: append(slices.Clone(m.Data), bytes.Repeat([]byte{0xa5}, 280)...)}
		if err := p.Parse(&long, &f); err != nil || f.Values[0].Num != 2 || len(f.Tail) != 280 {
			t.Errorf("%+v, longer: %v, %d processors, %d bytes left", o, err, f.Values[0].Num, len(f.Tail))
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

// Which numbers call types have is told by all of a stream.
func TestCallTypes(t *testing.T) {
	for _, tt := range []struct {
		types                             []uint32
		kernel                            bool
		internal, external, none, unknown uint64
	}{
		{[]uint32{1, 1}, false, 2, 0, 0, 0},
		{[]uint32{1, 0, 0xFFFFFFFF, 7}, false, 1, 1, 1, 1},
		{[]uint32{1, 0, 2, 2}, true, 2, 1, 1, 0},
		{[]uint32{1, 0xFF}, true, 0, 1, 0, 1},
	} {
		var data []byte
		for i, v := range tt.types {
			m := probe(424, pack('x', uint64(5)), pack('p', uint64(16)), pack(uint64(5), 0, uint64(16)))
			if i%2 == 1 { // one that failed
				m = probe(424, pack('x', uint64(5)), pack('p', uint64(0)), pack(uint64(5), 0, uint64(0)))
			}
			binary.LittleEndian.PutUint32(m[4:], uint32(i))
			binary.LittleEndian.PutUint32(m[20+16+9+9+8:], v)
			data = append(data, m...)
		}
		_, stats, err := read(t, data, swap.Options{Strict: true})
		internal, external, none, unknown := stats.CallTypes.Counts()
		if err != nil || stats.CallTypes.Kernel() != tt.kernel || internal != tt.internal || external != tt.external || none != tt.none || unknown != tt.unknown {
			t.Errorf("%v: %v, %+v", tt.types, err, stats.CallTypes)
		}
	}
}

// Streams are recognised by their headers, whole or cut, and nothing else is.
func TestMatch(t *testing.T) {
	for _, path := range vectors(t) {
		data := contents(t, path+".bin")
		n := 20
		if filepath.Base(path) == "unknown_id" {
			n = len(data) // an unknown message must be whole
		}
		for ; n <= len(data); n++ {
			if !swap.Match(data[:n]) {
				t.Errorf("%d bytes of %s are not recognised", n, path)
				break
			}
		}
	}
	unknown := message(0x7fff, 0, 1, 2, 3)
	for name, data := range map[string][]byte{
		"nothing":           nil,
		"zeros":             make([]byte, 100),
		"text":              []byte("a line of text\nand another one\n"),
		"unknown and more":  append(slices.Clone(unknown), make([]byte, 40)...),
		"two small halves":  message(wire.Error, 0)[:8:8],
		"packet of control": slices.Concat(pack(0x1001, 8, 0), []byte("4.1\x00")),
	} {
		if name == "two small halves" {
			data = append(data, make([]byte, 12)...)
		}
		if swap.Match(data) {
			t.Errorf("%s is taken for messages", name)
		}
	}
}

// Replies of the control channel are dumped by their fields and restored.
func TestControl(t *testing.T) {
	info := pack(0, uint64(1<<30), uint64(1<<40), 1, 0, 1, 0, "LTE", 100, 4, 2, "FLASH", "CPU")
	packet := func(id int, data []byte) []byte { return append(pack(id, len(data)), data...) }
	data := slices.Concat(
		packet(1, nil), packet(0x1001, pack(0, "4.1")), packet(0x1002, pack(0, 1700000000, 5)), packet(0x1007, info),
		packet(0x100A, pack(0, 2, 424, "malloc", 425, "free")), packet(0x1007, pack(-1)), packet(4, pack(uint64(8), uint64(0), 100, 10)),
		packet(2, []byte{1, 2, 3}), packet(0x77, []byte{4}), packet(0x1003, pack(-2)))
	if !swap.MatchControl(data) || swap.Match(data) {
		t.Error("it is not recognised")
	}
	for n := range len(data) + 1 {
		var text, back bytes.Buffer
		_, err := swap.DumpControl(&text, bytes.NewReader(data[:n]), swap.Options{})
		if err != nil && !errors.Is(err, trace.ErrTruncated) {
			t.Fatal(err)
		}
		if err := swap.Undump(&back, bytes.NewReader(text.Bytes())); err != nil || !bytes.Equal(back.Bytes(), data[:n]) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n < len(data) {
			continue
		}
		for _, want := range []string{
			` VERSION_REPLY result=0 version="4.1"`, ` START_REPLY result=0 start_time=1700000000.000000005`,
			` network="LTE" max_brightness=100 cpus=4 devices=["FLASH" "CPU"]`, ` apis=[{api_id=424 name="malloc"} {api_id=425 name="free"}]`,
			` GET_TARGET_INFO_REPLY layout=failed result=-1`, ` features0=0x8 features1=0x0 system_period=100 sampling_period=10`,
			` PACKET id=0x2 data=010203`, ` PACKET id=0x77 data=04`, ` STOP_REPLY result=-2`,
		} {
			if !bytes.Contains(text.Bytes(), []byte(want+"\n")) {
				t.Errorf("no line ends with %s", want)
			}
		}
	}
}

// The head of a UI hierarchy file is dumped by its fields, what follows as it is.
func TestUI(t *testing.T) {
	common := slices.Concat(pack(1, 2, 3, 4), []byte{1}, pack("name"), []byte{1}, make([]byte, 16+1+4+24+8+8+16+1))
	head := func(category byte) []byte {
		return slices.Concat([]byte{1}, pack(2, uint64(16)), []byte{category}, pack(0x101, "box", 1700000000, 5, uint64(0)))
	}
	elementary := slices.Concat(pack("text", "style"), []byte{0}, pack("type"))
	for name, data := range map[string][]byte{
		"evas":       slices.Concat(head(1), common, []byte{9, 9, 9}),
		"elementary": slices.Concat(head(2), common, elementary, []byte{9, 9, 9}),
		"empty":      slices.Concat([]byte{0}, pack(0)),
	} {
		var text, back bytes.Buffer
		damaged, err := swap.DumpUI(&text, bytes.NewReader(data), swap.Options{})
		if e := swap.Undump(&back, bytes.NewReader(text.Bytes())); e != nil || err != nil || damaged != 0 || !bytes.Equal(back.Bytes(), data) {
			t.Errorf("%s: %v, %v\n%s", name, err, e, text.String())
		}
		if name == "elementary" && !bytes.Contains(text.Bytes(), []byte(` type_name="box" rendering_time=1700000000.000000005 `)) ||
			name != "empty" && !bytes.Contains(text.Bytes(), []byte("RAW data=090909\n")) {
			t.Errorf("%s:\n%s", name, text.String())
		}
	}
	if _, err := swap.DumpUI(new(bytes.Buffer), bytes.NewReader([]byte{1}), swap.Options{}); !errors.Is(err, trace.ErrMalformed) {
		t.Errorf("%v", err)
	}
}
