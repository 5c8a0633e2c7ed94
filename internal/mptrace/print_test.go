package mptrace_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// numbers holds numbers of all lengths, including the limits.
func numbers() []uint64 {
	all := []uint64{0, math.MaxUint64}
	for p := uint64(1); ; p *= 10 {
		all = append(all, p-1, p, p+1)
		if p > math.MaxUint64/10 {
			break
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		all = append(all, r.Uint64()>>r.UintN(64))
	}
	return all
}

func TestNumbers(t *testing.T) {
	for _, v := range numbers() {
		for _, width := range []int{0, 6, 8, 20} {
			if got, want := string(mptrace.AppendDecimal([]byte("x"), v, width)), fmt.Sprintf("x%*d", width, v); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		for _, width := range []int{8, 16} {
			if got, want := string(mptrace.AppendAddress(nil, v, width)), fmt.Sprintf("0x%0*X", width, v); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	}
}

func TestRows(t *testing.T) {
	for _, v := range numbers() {
		n := mptrace.Entry{
			Number: v, Index: v / 3, Address: v, Size: v / 5, Life: v / 7, Live: mptrace.Sum{Count: v / 11, Bytes: v / 13},
		}
		for _, tt := range []struct {
			kind wire.Kind
			want string
		}{
			{wire.Alloc, fmt.Sprintf("%6d  %-8s%6d  0x%016X  %8d  %6s  %6d  %8d\n", v, "alloc", v/3, v, v/5, "", v/11, v/13)},
			{wire.Realloc, fmt.Sprintf("%6d  %-8s%6d  0x%016X  %8d  %6s  %6d  %8d\n", v, "realloc", v/3, v, v/5, "", v/11, v/13)},
			{wire.Free, fmt.Sprintf("%6d  %-8s%6d  0x%016X  %8d  %6d  %6d  %8d\n", v, "free", v/3, v, v/5, v/7, v/11, v/13)},
			{wire.Heap, fmt.Sprintf("%6s  %-8s%6s  0x%016X  %8d\n", "", "reserve", "", v, v/5)},
			{wire.Internal, fmt.Sprintf("%6s  %-8s%6s  0x%016X  %8d\n", "", "internal", "", v, v/5)},
		} {
			n.Kind = tt.kind
			table := mptrace.Table{AddressDigits: 16}
			if got := string(table.AppendRow(nil, &n, &wire.Source{Thread: 1})); got != tt.want {
				t.Fatalf("got  %q\nwant %q", got, tt.want)
			}
		}
	}
}

func TestSources(t *testing.T) {
	name := func(text string) wire.Name { return wire.Name{Text: text, Known: true} }
	n := mptrace.Entry{Kind: wire.Free}
	row := string((&mptrace.Table{AddressDigits: 8}).AppendRow(nil, &n, &wire.Source{}))
	for _, tt := range []struct {
		from wire.Source
		want string
	}{
		{wire.Source{}, ""},
		{wire.Source{Line: 3}, ""},
		{wire.Source{File: name("a.c")}, ""},
		{wire.Source{Thread: 11}, " thread 11"},
		{wire.Source{Function: name("main")}, " in main"},
		{wire.Source{File: name("a.c"), Line: 3}, " at a.c line 3"},
		{wire.Source{Thread: math.MaxUint64, Function: name(""), File: name(""), Line: 70000}, " thread 18446744073709551615 in  at  line 70000"},
	} {
		want := row
		if tt.want != "" {
			want += strings.Repeat(" ", 23) + tt.want + "\n"
		}
		table := mptrace.Table{AddressDigits: 8, Sources: true}
		if d := cmp.Diff(want, string(table.AppendRow(nil, &n, &tt.from))); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.from, d)
		}
	}
}

// Names cannot control a terminal or end a line, unless they are printed raw.
// Names in any encoding stay.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"", ""},
		{"_ZN4spamIiE3eggEv~", "_ZN4spamIiE3eggEv~"},
		{"größe \u00a0日本", "größe \u00a0日本"},
		{"gr\xf6\xdfe \xa0\xff", "gr\xf6\xdfe \xa0\xff"},
		{"\x1b[31mred\x00\t\r\n\x7f", `\x1b[31mred\x00\x09\x0d\x0a\x7f`},
		{"a\u0080\u009fb", `a\xc2\x80\xc2\x9fb`},
		{"a\x80\x9f", `a\x80\x9f`},
		{"\xe2\x80", "\xe2" + `\x80`},
	} {
		from := wire.Source{Function: wire.Name{Text: tt.name, Known: true}, File: wire.Name{Text: tt.name, Known: true}, Line: 7}
		for _, raw := range []bool{false, true} {
			table, want := mptrace.Table{AddressDigits: 8, Sources: true, Raw: raw}, tt.want
			if raw {
				want = tt.name
			}
			row := string(table.AppendRow(nil, &mptrace.Entry{}, &from))
			if want = " in " + want + " at " + want + " line 7\n"; !strings.HasSuffix(row, want) {
				t.Errorf("raw %v: %q, want %q", raw, row, want)
			}
		}
	}
}

// The headings are aligned with their columns.
func TestHeading(t *testing.T) {
	for _, digits := range []int{8, 16} {
		table := mptrace.Table{AddressDigits: digits}
		lines := strings.Split(string(table.AppendHeading(nil)), "\n")
		row := table.AppendRow(nil, &mptrace.Entry{Kind: wire.Free}, &wire.Source{})
		if len(lines) != 3 || len(lines[0]) != len(lines[1]) || len(lines[1]) != len(row)-1 {
			t.Errorf("%d digits:\n%s", digits, strings.Join(lines, "\n"))
		}
	}
}

func TestStatistics(t *testing.T) {
	b := mptrace.NewBook()
	entries(b, alloc(1, 16, 1), alloc(2, 32, 2), free(2),
		wire.Event{Kind: wire.Heap, Size: 4096}, wire.Event{Kind: wire.Internal, Size: 1})
	want := `memory allocation tracing statistics
------------------------------------
allocated: 2 (3 bytes)
freed:     1 (2 bytes)
unfreed:   1 (1 byte)
peak:      2 (3 bytes)
reserved:  1 (4096 bytes)
internal:  1 (1 byte)
total:     2 (4097 bytes)

smallest size: 1 byte
largest size:  2 bytes
average size:  2 bytes
`
	if d := cmp.Diff(want, string(mptrace.AppendStatistics(nil, b))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The average agrees with exact arithmetic, with halves rounded to even.
func TestAverage(t *testing.T) {
	for total := range uint64(60) {
		for count := uint64(1); count < 8; count++ {
			b := mptrace.NewBook()
			entries(b, alloc(1, 1, total))
			for i := uint64(1); i < count; i++ {
				entries(b, alloc(i+1, 1, 0))
			}
			want := new(big.Rat).SetFrac64(int64(total), int64(count))
			twice := 2 * total
			half := want.Denom().Int64() == 2 // its floor or the next number is even
			rounded := (twice + count) / (2 * count)
			if half && rounded%2 == 1 {
				rounded--
			}
			if got := b.Average(); got != rounded {
				t.Errorf("%d/%d: %d, want %d", total, count, got, rounded)
			}
		}
	}
	if got := mptrace.NewBook().Average(); got != 0 {
		t.Errorf("average of no allocations: %d", got)
	}
	b := mptrace.NewBook()
	entries(b, alloc(1, 1, math.MaxUint64))
	if got := b.Average(); got != math.MaxUint64 {
		t.Errorf("average of the largest size: %d", got)
	}
}

func TestHATF(t *testing.T) {
	events := []wire.Event{
		alloc(1, 0x1000, 8), alloc(2, 0xffffffffffffffff, 0),
		{Kind: wire.Heap, Address: 0x5000, Size: 4096},
		realloc(1, 0x1000, 16), realloc(1, 0x2000, 32), free(2), alloc(1, 0x3000, 1),
	}
	threads := []uint64{7, 0, 0, 7, 9, 9, 7}
	times := []int64{0, 5, 6, 10, 20, -1, 40}
	for _, tt := range []struct {
		name string
		full bool
		want string
	}{
		{"as mptrace", false, "1 8 0x1000\n1 0 0xffffffffffffffff\n4 16 0x1000 0x1000\n4 32 0x1000 0x2000\n2 0xffffffffffffffff\n2 0x2000\n1 1 0x3000\n"},
		{
			"full", true, "9 7\n1 8 0x1000 0 7\n1 0 0xffffffffffffffff 5\n3 16 0x1000 0x1000 10 7\n9 9\n4 32 0x1000 0x2000 20 9\n" +
				"2 0xffffffffffffffff 0 9\n2 0x2000 40 7\n1 1 0x3000 40 7\n10 7\n",
		},
	} {
		h := mptrace.HATF{Full: tt.full}
		b := mptrace.NewBook()
		var got []byte
		for i := range events {
			var n mptrace.Entry
			b.Add(&events[i], &n)
			got = h.AppendEvent(got, &n, threads[i], times[i])
		}
		got = h.AppendThreadEnd(h.AppendThreadEnd(got, 7), 8)
		if d := cmp.Diff(tt.want, string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestPrintingAllocations(t *testing.T) {
	table := mptrace.Table{AddressDigits: 16, Sources: true}
	from := wire.Source{Thread: 12, Function: wire.Name{Text: "main", Known: true}, File: wire.Name{Text: "a.c", Known: true}, Line: 3}
	n := mptrace.Entry{Kind: wire.Free, Number: 1e9, Index: 1e9, Address: 0x7fff12345678, Size: 100}
	h := mptrace.HATF{Full: true}
	buf := h.AppendEvent(make([]byte, 0, 1<<10), &n, 12, 1)
	if got := testing.AllocsPerRun(1000, func() {
		buf = table.AppendRow(buf[:0], &n, &from)
		buf = h.AppendEvent(buf, &n, 12, 1e9)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
