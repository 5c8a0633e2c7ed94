package table_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/report/table"
)

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name    string
		columns []table.Column
		fill    func(*table.Table)
		want    string
	}{
		{"no rows", []table.Column{{Title: "n"}, {Title: "name", Left: true}}, func(*table.Table) {}, "n  name\n"},
		{
			"alignment",
			[]table.Column{{Title: "n"}, {Title: "name", Left: true}, {Title: "m"}},
			func(x *table.Table) {
				x.Row("1", "ä", "1000")
				x.Row("22222", "long name", "5")
				x.Blank()
				x.Row("3")
			},
			"    n  name          m\n    1  ä          1000\n22222  long name     5\n\n    3\n",
		},
		{
			"a long last column",
			[]table.Column{{Title: "n", Width: 3}, {Title: "f", Left: true, Gap: 1}},
			func(x *table.Table) { x.Row("1", "function"); x.Rule(); x.Row("", "g", "unseen") },
			"  n f\n  1 function\n-----\n    g\n",
		},
		{
			"groups",
			[]table.Column{
				{Title: "size"}, {Title: "count", Group: "all"}, {Title: "bytes", Group: "all"}, {Title: "n", Group: "left", Gap: 3}, {Title: "x"},
			},
			func(x *table.Table) { x.Row("1", "2", "3", "4", "5") },
			"          all        left\n      ------------   -\nsize  count  bytes   n  x\n   1      2      3   4  5\n",
		},
		{
			"no gap",
			[]table.Column{{Title: "a", Gap: 4}, {Title: "b", Gap: -1}},
			func(x *table.Table) { x.Row("1", "2") },
			"    ab\n    12\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := table.New(tt.columns...)
			tt.fill(x)
			var b strings.Builder
			n, err := x.WriteTo(&b)
			if err != nil || n != int64(b.Len()) {
				t.Errorf("%d, %v", n, err)
			}
			if d := cmp.Diff(tt.want, b.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

func TestWriteFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := table.New(table.Column{Title: "a"}).WriteTo(failing{broken}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// pieces records the largest single write, and fails after the first one.
type pieces struct {
	most, n int
	fail    bool
}

func (p *pieces) Write(b []byte) (int, error) {
	p.most = max(p.most, len(b))
	if p.n++; p.fail && p.n > 1 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestLongTable checks that the text of a table is not held in memory as a
// whole.
func TestLongTable(t *testing.T) {
	x := table.New(table.Column{Title: "a"}, table.Column{Title: "b", Left: true})
	const rows = 20_000
	for range rows {
		x.Row("1", "text of a row")
	}
	const width = 17 // with the line's end
	var w pieces
	if n, err := x.WriteTo(&w); err != nil || n != rows*width+int64(len("a  b\n")) || w.most > 1<<16 {
		t.Errorf("%d bytes, %d at most at once: %v", n, w.most, err)
	}
	w = pieces{fail: true}
	if n, err := x.WriteTo(&w); !errors.Is(err, io.ErrShortWrite) || n != 1<<16 {
		t.Errorf("%d bytes: %v", n, err)
	}
}
