package proc

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestParseMaps(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Map
	}{
		{"empty", "", nil},
		{
			"file", "564ab75cc000-564ab75d2000 r-xp 00002000 fe:00 247278                     /usr/bin/head\n",
			[]Map{{Start: 0x564ab75cc000, End: 0x564ab75d2000, Perms: Read | Exec, Offset: 0x2000, Major: 0xfe, Inode: 247278, Path: "/usr/bin/head"}},
		},
		{
			"path with spaces", "1000-2000 r--s 00000000 103:1f 18446744073709551615 /a b  c \n",
			[]Map{{Start: 0x1000, End: 0x2000, Perms: Read | Shared, Major: 0x103, Minor: 0x1f, Inode: 1<<64 - 1, Path: "/a b  c "}},
		},
		{
			"deleted", "1000-2000 rwxp 00000000 00:01 7                          /memfd:x y (deleted)\n",
			[]Map{{Start: 0x1000, End: 0x2000, Perms: Read | Write | Exec, Minor: 1, Inode: 7, Path: "/memfd:x y", Deleted: true}},
		},
		{
			"deleted twice is a name", "1000-2000 r--p 00000000 00:01 7 /x (deleted) (deleted)\n",
			[]Map{{Start: 0x1000, End: 0x2000, Perms: Read, Minor: 1, Inode: 7, Path: "/x (deleted)", Deleted: true}},
		},
		{
			"anonymous, last line without end", "7ffe0000-7ffe1000 ---p 00000000 00:00 0 \nf000-f001 rw-p 00000000 00:00 0",
			[]Map{{Start: 0x7ffe0000, End: 0x7ffe1000}, {Start: 0xf000, End: 0xf001, Perms: Read | Write}},
		},
		{
			"special areas",
			"1000-2000 rw-p 00000000 00:00 0                                  [heap]\n" +
				"2000-3000 rw-p 00000000 00:00 0                          [anon:a b (deleted)]\n" +
				"3000-4000 --xp 00000000 00:00 0                                  [uprobes]\n" +
				"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
			[]Map{
				{Start: 0x1000, End: 0x2000, Perms: Read | Write, Path: "[heap]"},
				{Start: 0x2000, End: 0x3000, Perms: Read | Write, Path: "[anon:a b (deleted)]"},
				{Start: 0x3000, End: 0x4000, Perms: Exec, Path: "[uprobes]"},
				{Start: 0xffffffffff600000, End: 0xffffffffff601000, Perms: Exec, Path: "[vsyscall]"},
			},
		},
		{
			"offset above 32 bits, pseudo file", "1000-2000 r--s 123456789000 00:0f 9 anon_inode:[perf_event]\n",
			[]Map{{Start: 0x1000, End: 0x2000, Perms: Read | Shared, Offset: 0x123456789000, Minor: 0xf, Inode: 9, Path: "anon_inode:[perf_event]"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseMaps(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			slow, err := ParseMaps(iotest.OneByteReader(strings.NewReader(tt.text)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, slow); diff != "" {
				t.Error("read byte by byte:", diff)
			}
		})
	}
}

func TestParseMapsErrors(t *testing.T) {
	const good = "1000-2000 r-xp 00000000 00:00 0 /x\n"
	for _, bad := range []string{
		"\n",
		"1000\n",
		"-2000 r-xp 00000000 00:00 0\n",
		"1000-2000 r-x 00000000 00:00 0\n",
		"1000-2000 r-xq 00000000 00:00 0\n",
		"1000-2000 xwrp 00000000 00:00 0\n",
		"2000-1000 r-xp 00000000 00:00 0\n",
		"1000-20000000000000000 r-xp 00000000 00:00 0\n",
		"1000-2000 r-xp 00000000 0000 0\n",
		"1000-2000 r-xp 00000000 00:100000000 0\n",
		"1000-2000 r-xp 00000000 00:00 18446744073709551616\n",
		"1000-2000 r-xp 00000000 00:00 x\n",
		"1000-2000 r-xp 00000000 00:00 \n",
		"1000-2000 R-xp 00000000 00:00 0\n",
		"1000-2000 r-xp 0000000G 00:00 0\n",
		"1000-2000 r-xp 00000000 00:00 0 /" + strings.Repeat("x", maxLine) + "\n",
	} {
		got, err := ParseMaps(strings.NewReader(good + bad))
		if !errors.Is(err, ErrSyntax) {
			t.Errorf("%.40q: error %v, want ErrSyntax", bad, err)
		}
		if len(got) != 1 {
			t.Errorf("%.40q: %d mappings before the error, want 1", bad, len(got))
		}
	}
}

func TestParseMapsReadError(t *testing.T) {
	want := errors.New("broken")
	text := "1000-2000 r-xp 00000000 00:00 0 /x\n2000-3000 r-xp 00000000 00:00 0 /x\n"
	got, err := ParseMaps(iotest.DataErrReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(want))))
	if !errors.Is(err, want) || len(got) != 2 {
		t.Errorf("got %d mappings and error %v, want 2 and %v", len(got), err, want)
	}
}

func TestPerms(t *testing.T) {
	for p, want := range map[Perms]string{0: "---p", Read | Exec: "r-xp", Read | Write | Exec | Shared: "rwxs"} {
		if p.String() != want {
			t.Errorf("%d prints %s, want %s", p, p, want)
		}
	}
}

func TestMapsReaderKeepsNames(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "%x-%x r-xp 00000000 00:00 5 /usr/lib/library-%d.so\n", i<<12, (i+1)<<12, i/4)
	}
	var (
		mr   MapsReader
		maps []Map
		src  = strings.NewReader(text.String())
	)
	read := func() {
		src.Reset(text.String())
		var err error
		if maps, err = mr.Parse(maps[:0], src); err != nil || len(maps) != 200 {
			t.Fatal(len(maps), err)
		}
	}
	read()
	if n := testing.AllocsPerRun(10, read); n != 0 {
		t.Errorf("%v allocations for a list that was read before, want 0", n)
	}
}

// line prints m in the kernel's format.
func (m *Map) line() string {
	path := m.Path
	if m.Deleted {
		path += deletedSuffix
	}
	return fmt.Sprintf("%08x-%08x %s %08x %02x:%02x %d %s\n", m.Start, m.End, m.Perms, m.Offset, m.Major, m.Minor, m.Inode, path)
}

func FuzzParseMaps(f *testing.F) {
	f.Add("564ab75cc000-564ab75d2000 r-xp 00002000 fe:00 247278                     /usr/bin/head\n")
	f.Add("1000-2000 rwxp 00000000 00:01 7                          /memfd:x y (deleted)\n1000-2000 rwxp 00000000 00:01 7")
	f.Add("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n")
	f.Fuzz(func(t *testing.T, text string) {
		maps, err := ParseMaps(strings.NewReader(text))
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatalf("error %v is not ErrSyntax", err)
		}
		var again strings.Builder
		for i := range maps {
			if maps[i].Start > maps[i].End {
				t.Fatalf("mapping ends before it starts: %+v", maps[i])
			}
			again.WriteString(maps[i].line())
		}
		second, err := ParseMaps(strings.NewReader(again.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(maps, second); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "%x-%x r-xp 00000000 00:00 5                   /usr/lib/library-%d.so\n", i<<12, (i+1)<<12, i/4)
	}
	var (
		mr   MapsReader
		maps []Map
		src  = strings.NewReader("")
	)
	b.ReportAllocs()
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		src.Reset(text.String())
		maps, _ = mr.Parse(maps[:0], src)
	}
}
