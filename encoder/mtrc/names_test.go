package mtrc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// listed is the table of names as its description has it: a list in the order of use
// that is searched from the start.
type listed struct {
	names []string
	ids   []byte
}

func (l *listed) append(b []byte, text string) []byte {
	if i := slices.Index(l.names, text); i >= 0 {
		id := l.ids[i]
		l.names, l.ids = slices.Delete(l.names, i, i+1), slices.Delete(l.ids, i, i+1)
		l.names, l.ids = slices.Insert(l.names, 0, text), slices.Insert(l.ids, 0, id)
		return append(b, id)
	}
	id := byte(len(l.ids) + 1)
	if id > 32 {
		id = l.ids[31]
		l.names, l.ids = l.names[:31], l.ids[:31]
	}
	l.names, l.ids = slices.Insert(l.names, 0, text), slices.Insert(l.ids, 0, id)
	return append(append(append(b, id|0x80), text...), 0)
}

func TestNamesLikeAList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, many := range []int{1, 2, 31, 32, 33, 40, 300} {
		var table names
		var list listed
		for n := range 20_000 {
			k := random.IntN(many)
			if random.IntN(3) > 0 {
				k = k * random.IntN(many) / many // some come more often
			}
			text := fmt.Sprintf("%s%d", strings.Repeat("f", k%23), k)
			got, cut := table.append(nil, text)
			if want := list.append(nil, text); cut || !bytes.Equal(got, want) {
				t.Fatalf("%d names, the %dth is written as %q, want %q", many, n, got, want)
			}
		}
		table.clear()
		if got, _ := table.append(nil, "x"); string(got) != "\x81x\x00" {
			t.Errorf("after clear: %q", got)
		}
	}
}

func TestNamesAreCut(t *testing.T) {
	var table names
	long := strings.Repeat("n", 1023)
	for _, tt := range []struct {
		text, want string
		cut        bool
	}{
		{"", "\x00", false},
		{long, "\x81" + long + "\x00", false},
		{long + "m", "\x01", true},
		{long + "\x00", "\x01", true},
		{"a\x00b", "\x82a\x00", true},
		{"a", "\x02", false},
		{"\x00b", "\x00", true},
	} {
		got, cut := table.append(nil, tt.text)
		if string(got) != tt.want || cut != tt.cut {
			t.Errorf("%.10q is written as %.10q, cut %v", tt.text, got, cut)
		}
	}
}
