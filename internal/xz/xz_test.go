package xz_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"

	"rtrace-bpf/internal/xz"
)

// pack compresses data with the xz program.
func pack(t testing.TB, data []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("xz", append([]string{"--stdout", "--threads=1"}, args...)...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pack with xz (make need-test installs it): %v", err)
	}
	return out
}

// samples holds data that compresses well, badly, and not at all.
func samples() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 300_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	var text bytes.Buffer
	words := []string{"malloc", "free", "_ZN4core3fmt5write", "std::vector<int>", "\x00", "\n"}
	for text.Len() < 1<<20 {
		text.WriteString(words[r.IntN(len(words))])
		text.WriteByte(byte(r.IntN(4)))
	}
	return map[string][]byte{
		"empty": {}, "one": {7}, "zeros": make([]byte, 3<<20), "random": random, "text": text.Bytes(),
		"mixed": bytes.Join([][]byte{random[:100_000], text.Bytes()[:100_000], random[:100_000]}, nil),
	}
}

// TestUnpack decompresses data from the xz program in all formats that it may
// choose.
func TestUnpack(t *testing.T) {
	for name, data := range samples() {
		for _, args := range [][]string{
			{},
			{"-0"},
			{"-9e"},
			{"--check=crc32"},
			{"--check=none"},
			{"--check=sha256"},
			{"--block-size=65536"},
			{"--lzma2=preset=6,lc=0,lp=4,pb=0"},
			{"--lzma2=preset=6,lc=4,lp=0,pb=4"},
			{"--lzma2=preset=6,dict=4KiB"},
		} {
			got, err := xz.Unpack(pack(t, data, args...), len(data))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s %v: %d bytes, want %d, %v", name, args, len(got), len(data), err)
			}
		}
	}
}

func TestUnpackErrors(t *testing.T) {
	data := samples()["mixed"]
	packed := pack(t, data)
	with := func(at int, b byte) []byte {
		p := bytes.Clone(packed)
		p[at] ^= b
		return p
	}
	for _, tt := range []struct {
		name   string
		packed []byte
		limit  int
		want   error
	}{
		{"empty", nil, 10, xz.ErrTruncated},
		{"other", bytes.Repeat([]byte("x"), 100), 10, xz.ErrMalformed},
		{"limit", packed, len(data) - 1, xz.ErrLimit},
		{"cut", packed[:len(packed)/2], len(data), xz.ErrTruncated},
		{"header", with(7, 1), len(data), xz.ErrChecksum},
		{"block header", with(14, 1), len(data), xz.ErrChecksum},
		{"filter", pack(t, data, "--x86", "--lzma2"), len(data), xz.ErrUnsupported},
	} {
		if _, err := xz.Unpack(tt.packed, tt.limit); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	// Every change of a byte of the data is detected.
	for at := 24; at < len(packed)-40; at += 997 {
		if got, err := xz.Unpack(with(at, 0x10), len(data)); err == nil && !bytes.Equal(got, data) {
			t.Errorf("byte %d: the change is not detected", at)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	if _, err := exec.LookPath("xz"); err == nil {
		for _, s := range []string{"", "abc", "abcabcabcabcabcabc"} {
			f.Add(pack(f, []byte(s)))
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		const limit = 1 << 20
		got, err := xz.Unpack(packed, limit)
		if err == nil && len(got) > limit {
			t.Fatal("more than the limit")
		}
	})
}
