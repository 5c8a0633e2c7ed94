package mtrc

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// oddNames are names of which some cannot be written unchanged.
var oddNames = []string{
	"", "main", "\x00", "\x00x", "x\x00y", "\xff\x1b[2J", "größe",
	strings.Repeat("n", wire.MaxName), strings.Repeat("n", wire.MaxName+1), strings.Repeat("n", 1<<20),
}

// Whatever the records are, the written events follow the rules.
func TestWriterRules(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	name := func() string {
		if random.IntN(4) == 0 {
			return oddNames[random.IntN(len(oddNames))]
		}
		return strings.Repeat("f", 1+random.IntN(60))
	}
	data := make([]byte, 40_000)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for _, o := range []Options{{}, {Words: 4}, {Legacy: true}} {
		var out bytes.Buffer
		w, err := New(&out, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range script(data) {
			c := &r.Call
			c.Caller = trace.Caller{Function: name(), File: name(), Line: random.Uint64() >> random.UintN(64)}
			c.ID, c.OldID = c.ID<<random.UintN(2)<<44, c.OldID<<44
			c.Thread = random.Uint64() >> random.UintN(64)
			if c.Size == 3 {
				c.Size, c.Index = random.Uint64()>>random.UintN(64), random.Uint64()
			}
			switch random.IntN(300) {
			case 0:
				r = &trace.Record{Kind: trace.KindHeader, Header: trace.Header{BigEndian: c.Size == 0, PointerSize: 4 << (c.Size & 1)}}
			case 1:
				r = &trace.Record{Kind: trace.KindEnd}
			case 2, 3, 4:
				r = &trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: c.ID, Size: c.Size, Internal: c.Size == 0}}
			}
			if err := w.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rules := testutil.MTRCRules{Shared: true} // processes are mixed
		if o.Legacy {
			rules.Limit = wire.LegacyLimit
		}
		rules.Check(t, out.Bytes())
		if s := w.Stats(); s.CutNames == 0 || s.Replaced == 0 || s.Renumbered == 0 || o.Legacy && (s.ClampedSizes == 0 || s.FoldedThreads == 0) {
			t.Errorf("not everything happened: %+v", s)
		}
	}
}
