package sprtrace

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// both reads a trace twice: at once, so that calls are read with their stacks in one
// step, and byte by byte, so that packets are read one by one. The results must be the
// same.
func both(t *testing.T, data []byte, opts Options) {
	t.Helper()
	read := func(r io.Reader) (all []*trace.Record, stats Stats, said string) {
		d, err := New(r, opts)
		if err == nil {
			all, err = trace.Load(d)
			for i, r := range all {
				all[i] = testutil.OfKind(r.Kind, r)
			}
			stats = d.Stats()
		}
		if err != nil {
			said = err.Error()
		}
		return all, stats, said
	}
	quick, quickStats, quickSaid := read(bytes.NewReader(data))
	slow, slowStats, slowSaid := read(iotest.OneByteReader(bytes.NewReader(data)))
	if quickSaid != slowSaid {
		t.Fatalf("in one go: %s; packet by packet: %s", quickSaid, slowSaid)
	}
	if !reflect.DeepEqual(slow, quick) || !reflect.DeepEqual(slowStats, quickStats) {
		t.Fatalf("-packet by packet +in one go\n%s%s", cmp.Diff(slow, quick), cmp.Diff(slowStats, quickStats))
	}
}

// TestQuick changes and cuts the calls of a trace at each byte, and changes their
// sizes.
func TestQuick(t *testing.T) {
	data := readFile(t, filepath.Join(corpus, "c-leaks.rtrace"))
	if both(t, data, Options{}); t.Failed() {
		return
	}
	first := bytes.Index(data, binary.LittleEndian.AppendUint32(nil, wire.CALL))
	const several = 350 // bytes, some calls with their stacks
	last := min(len(data), first+several)
	for at := first; at < last; at++ {
		for _, x := range []byte{0x01, 0x04, 0x10, 0x80} {
			changed := bytes.Clone(data[:last+100])
			changed[at] ^= x
			for _, opts := range []Options{{}, {Legacy: true}} {
				both(t, changed, opts)
			}
		}
	}
	for at := first; at < last; at++ {
		both(t, data[:at], Options{})
		if code := binary.LittleEndian.Uint32(data[at:]); code != wire.CALL && code != wire.BTRC {
			continue
		}
		for size := range uint32(64) {
			changed := bytes.Clone(data[:last+100])
			binary.LittleEndian.PutUint32(changed[at+4:], size)
			both(t, changed, Options{})
		}
	}
}

// FuzzQuick: as TestQuick, with any input.
func FuzzQuick(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data) })
	f.Add(readFile(f, filepath.Join(corpus, "c-leaks.rtrace"))[:2000])
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, opts := range []Options{{}, {Strict: true}, {Legacy: true}} {
			both(t, data, opts)
		}
	})
}
