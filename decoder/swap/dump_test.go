package swap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/decoder/swap"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// The whole stream decides which numbering its call types have.
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
			if i%2 == 1 { // a call that failed
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

// Replies on the control channel are dumped field by field and restored.
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

// The header of a UI hierarchy file is dumped field by field, the rest in hexadecimal.
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
