package swap_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"rtrace-bpf/decoder/swap"
	wire "rtrace-bpf/internal/wire/swap"
)

// Lists of open files are distinguished by their contents.
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

// Times may be in either order. The half that cannot be a number of nanoseconds is the
// seconds.
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

// The daemon declares more bytes of SYSTEM than it fills, and does not send the number
// of processors.
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
