package resolve

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// image makes an ELF file with code segments and functions, all 64-bit and little-endian.
// Each segment is {offset, address, size}; a read-only segment at base comes first.
func image(typ elf.Type, buildID string, base uint64, code [][3]uint64, functions map[string]uint64) []byte {
	le := func(b []byte, size int, v uint64) []byte {
		for range size {
			b, v = append(b, byte(v)), v>>8
		}
		return b
	}
	symbols, names := make([]byte, 24), []byte{0}
	for name, addr := range functions {
		symbols = le(symbols, 4, uint64(len(names)))
		symbols = append(symbols, byte(elf.STB_GLOBAL)<<4|byte(elf.STT_FUNC), 0)
		symbols = le(le(le(symbols, 2, 1), 8, addr), 8, 16)
		names = append(append(names, name...), 0)
	}
	note := append(le(le(le(nil, 4, 4), 4, uint64(len(buildID))), 4, 3), "GNU\x00"+buildID...)
	body := make([]byte, 64+56*(1+len(code)))
	var at [3]uint64
	for i, part := range [][]byte{symbols, names, note} {
		at[i] = uint64(len(body))
		body = append(body, part...)
	}
	shoff := uint64(len(body))
	section := func(typ elf.SectionType, flags, addr, off, size, link uint64) {
		body = le(le(le(le(body, 4, 0), 4, uint64(typ)), 8, flags), 8, addr)
		body = le(le(le(body, 8, off), 8, size), 4, link)
		body = le(le(le(body, 4, 0), 8, 4), 8, 0)
	}
	section(0, 0, 0, 0, 0, 0)
	section(elf.SHT_SYMTAB, 0, 0, at[0], uint64(len(symbols)), 2)
	section(elf.SHT_STRTAB, 0, 0, at[1], uint64(len(names)), 0)
	section(elf.SHT_NOTE, 0, 0, at[2], uint64(len(note)), 0)
	head := append([]byte(elf.ELFMAG), 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	head = le(le(le(head, 2, uint64(typ)), 2, uint64(elf.EM_X86_64)), 4, 1)
	head = le(le(le(le(head, 8, 0), 8, 64), 8, shoff), 4, 0)
	for _, v := range []uint64{64, 56, uint64(1 + len(code)), 64, 4, 0} {
		head = le(head, 2, v)
	}
	segment := func(flags elf.ProgFlag, off, addr, size uint64) {
		head = le(le(head, 4, uint64(elf.PT_LOAD)), 4, uint64(flags))
		for _, v := range []uint64{off, addr, addr, size, size, 0x1000} {
			head = le(head, 8, v)
		}
	}
	segment(elf.PF_R, 0, base, 0x100)
	for _, s := range code {
		segment(elf.PF_R|elf.PF_X, s[0], s[1], s[2])
	}
	copy(body, head)
	return body
}

// library returns a file with functions f and g in one code segment.
func library(buildID string) []byte {
	return image(elf.ET_DYN, buildID, 0, [][3]uint64{{0x1000, 0x1000, 0x1800}}, map[string]uint64{"f": 0x1010, "g": 0x2000})
}

// opener opens files that exist only in the test.
func opener(files map[string][]byte) Options {
	return Options{Open: func(m trace.Module) (*symbol.File, error) {
		data, ok := files[m.Path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return symbol.New(bytes.NewReader(data), int64(len(data)))
	}}
}

func mapped(start, end, offset, base uint64, path string) *trace.Record {
	return &trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: start, End: end, Offset: offset, Base: base, Path: path}}
}

func unmapped(start, end uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindUnmapping, Mapping: trace.Mapping{Start: start, End: end}}
}

func described(path, buildID string) *trace.Record {
	return &trace.Record{Kind: trace.KindModule, Module: trace.Module{Path: path, BuildID: buildID}}
}

// hexOf returns the build ID that consists of the bytes of text.
func hexOf(text string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

func TestResolver(t *testing.T) {
	files := map[string][]byte{
		"/a": library("aaaa"), "/b": library("bbbb"), "/bad": []byte("no ELF file"),
		"/exe": image(elf.ET_EXEC, "", 0x400000, [][3]uint64{{0x1000, 0x401000, 0x1000}}, map[string]uint64{"main": 0x401000, "_ZN1A1bEi": 0x401010}),
	}
	exec := &trace.Record{Kind: trace.KindExec}
	const at = 0x7f0000000000
	tests := []struct {
		name    string
		records []*trace.Record
		addr    uint64
		want    string
		stats   Stats
	}{
		{"nothing", nil, at, "in ??", Stats{}},
		{"zero", []*trace.Record{mapped(0, 0x1000, 0, 0, "/a")}, 0, "in ??", Stats{}},
		{"offset known", []*trace.Record{mapped(at+0x1000, at+0x3000, 0x1000, at, "/a")}, at + 0x1011, "f() from /a", Stats{}},
		{"before the first function", []*trace.Record{mapped(at+0x1000, at+0x3000, 0x1000, at, "/a")}, at + 0x1010, "from /a", Stats{}},
		{"a call as last instruction", []*trace.Record{mapped(at+0x1000, at+0x3000, 0x1000, at, "/a")}, at + 0x1020, "f() from /a", Stats{}},
		{"after a function", []*trace.Record{mapped(at+0x1000, at+0x3000, 0x1000, at, "/a")}, at + 0x1021, "from /a", Stats{}},
		{"end of a mapping", []*trace.Record{mapped(at+0x1000, at+0x2010, 0x1000, at, "/a")}, at + 0x2010, "g() from /a", Stats{}},
		{"after a mapping", []*trace.Record{mapped(at+0x1000, at+0x2010, 0x1000, at, "/a")}, at + 0x2011, "in ??", Stats{}},
		{"a part of the code", []*trace.Record{mapped(at+0x2000, at+0x3000, 0x2000, at, "/a")}, at + 0x2001, "g() from /a", Stats{}},
		{"start of code", []*trace.Record{mapped(at, at+0x2000, 0, 0, "/a")}, at + 0x11, "f() from /a", Stats{}},
		{"load base", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a")}, at + 0x1011, "f() from /a", Stats{}},
		{"load base, 64 KiB pages", []*trace.Record{mapped(at, at+0x10000, 0, 0, "/a")}, at + 0x1011, "f() from /a", Stats{}},
		{"length of nothing", []*trace.Record{mapped(at, at+0x5000, 0, 0, "/a")}, at + 0x1011, "from /a", Stats{Unplaced: 1}},
		{"fixed, start of code", []*trace.Record{mapped(0x401000, 0x402000, 0, 0, "/exe")}, 0x401001, "main() from /exe", Stats{}},
		{"fixed, exact", []*trace.Record{mapped(0x401000, 0x402000, 0x1000, 0x401000, "/exe")}, 0x401001, "main() from /exe", Stats{}},
		{"mangled", []*trace.Record{mapped(0x401000, 0x402000, 0, 0, "/exe")}, 0x401011, "A::b(int) from /exe", Stats{}},
		{"no such file", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/c")}, at + 0x1011, "from /c", Stats{Missing: 1}},
		{"not an ELF file", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/bad")}, at + 0x1011, "from /bad", Stats{Missing: 1}},
		{"memory", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/memfd:jit")}, at + 0x1011, "from /memfd:jit", Stats{}},
		{"vsyscall", []*trace.Record{mapped(0xffffffffff600000, 0xffffffffff601000, 0, 0, "[vsyscall]")}, 0xffffffffff600409, "time() from [vsyscall]", Stats{}},
		{"vsyscall, nothing there", []*trace.Record{mapped(0xffffffffff600000, 0xffffffffff601000, 0, 0, "[vsyscall]")}, 0xffffffffff600c09, "from [vsyscall]", Stats{}},
		{"vdso of some kernel", []*trace.Record{mapped(at, at+0x2000, 0, 0, "[vdso]")}, at + 0x111, "from [vdso]", Stats{}},
		{"the latest mapping counts", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), mapped(at+0x1000, at+0x4000, 0, 0, "/b")}, at + 0x2011, "f() from /b", Stats{}},
		{"what it does not cover stays", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), mapped(at+0x2000, at+0x5000, 0, 0, "/b")}, at + 0x1011, "f() from /a", Stats{}},
		{"a hole in a mapping", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), unmapped(at+0x1800, at+0x1900)}, at + 0x2001, "g() from /a", Stats{}},
		{"in the hole", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), unmapped(at+0x1000, at+0x1900)}, at + 0x1011, "in ??", Stats{}},
		{"unmapped", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), unmapped(at, at+0x3000)}, at + 0x1011, "in ??", Stats{}},
		{"mapped again", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), unmapped(at, at+0x3000), mapped(at, at+0x3000, 0, 0, "/b")}, at + 0x1011, "f() from /b", Stats{}},
		{"exec", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), exec}, at + 0x1011, "in ??", Stats{}},
		{"right build ID", []*trace.Record{described("/a", hexOf("aaaa")), mapped(at, at+0x3000, 0, 0, "/a")}, at + 0x1011, "f() from /a", Stats{}},
		{"build ID in capitals", []*trace.Record{described("/exe", ""), described("/b", strings.ToUpper(hexOf("bbbb"))), mapped(at, at+0x3000, 0, 0, "/b")}, at + 0x1011, "f() from /b", Stats{}},
		{"another build ID", []*trace.Record{described("/a", hexOf("old!")), mapped(at, at+0x3000, 0, 0, "/a")}, at + 0x1011, "from /a", Stats{Mismatched: 1}},
		{"described late", []*trace.Record{mapped(at, at+0x3000, 0, 0, "/a"), described("/a", hexOf("old!"))}, at + 0x1011, "from /a", Stats{Mismatched: 1}},
		{
			"replaced while traced",
			[]*trace.Record{described("/a", hexOf("old!")), mapped(at, at+0x3000, 0, 0, "/a"), described("/a", hexOf("aaaa")), mapped(2*at, 2*at+0x3000, 0, 0, "/a")},
			at + 0x1011, "from /a",
			Stats{Mismatched: 1},
		},
		{
			"replacement",
			[]*trace.Record{described("/a", hexOf("old!")), mapped(at, at+0x3000, 0, 0, "/a"), described("/a", hexOf("aaaa")), mapped(2*at, 2*at+0x3000, 0, 0, "/a")},
			2*at + 0x1011, "f() from /a",
			Stats{},
		},
		{
			"linked another way",
			[]*trace.Record{{Kind: trace.KindModule, Module: trace.Module{Path: "/a", Fixed: true}}, mapped(at, at+0x3000, 0, at, "/a")},
			at + 0x1011, "from /a",
			Stats{Mismatched: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := New(opener(files))
			for _, rec := range tt.records {
				r.Observe(rec)
			}
			for range 2 { // the second answer is a cached one
				if got := r.Text(tt.addr); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
			if diff := cmp.Diff(tt.stats, r.Stats()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Results change with the mappings, although they are cached.
func TestResolverFollows(t *testing.T) {
	r := New(opener(map[string][]byte{"/a": library("aaaa"), "/b": library("bbbb")}))
	steps := []struct {
		rec  *trace.Record
		want string
	}{
		{mapped(0x10000, 0x13000, 0, 0, "/a"), "f() from /a"},
		{mapped(0x10000, 0x13000, 0, 0, "/a"), "f() from /a"},
		{mapped(0x10000, 0x13000, 0, 0, "/b"), "f() from /b"},
		{unmapped(0x10000, 0x13000), "in ??"},
		{mapped(0x10000, 0x13000, 0, 0, "/a"), "f() from /a"},
		{described("/a", "00"), "from /a"},
		{mapped(0x0f000, 0x12000, 0, 0, "/b"), "from /b"},
	}
	for i, s := range steps {
		r.Observe(s.rec)
		if got := r.Text(0x11011); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
}

// Two segments whose lengths do not distinguish them give no names.
func TestAmbiguousLength(t *testing.T) {
	r := New(opener(map[string][]byte{"/two": image(elf.ET_DYN, "", 0, [][3]uint64{{0x1000, 0x1000, 0x1000}, {0x2000, 0x8000, 0x1000}},
		map[string]uint64{"f": 0x1000, "g": 0x8000})}))
	r.Observe(mapped(0x10000, 0x11000, 0, 0, "/two")) // either
	r.Observe(mapped(0x20000, 0x29000, 0, 0, "/two")) // from the base to the end of the second
	r.Observe(mapped(0x30000, 0x31000, 0x2000, 0x2e000, "/two"))
	for addr, want := range map[uint64]string{0x10001: "from /two", 0x28001: "g() from /two", 0x21001: "f() from /two", 0x30001: "g() from /two"} {
		if got := r.Text(addr); got != want {
			t.Errorf("%#x: got %q, want %q", addr, got, want)
		}
	}
	if got := r.Stats().Unplaced; got != 1 {
		t.Errorf("%d mappings have no place, want 1", got)
	}
}

func TestProcesses(t *testing.T) {
	r := New(opener(map[string][]byte{"/a": library("aaaa"), "/b": library("bbbb")}))
	if got := r.Process(7).Text(0x11011); got != "in ??" {
		t.Errorf("nothing is mapped, got %q", got)
	}
	for pid, path := range map[int32]string{7: "/a", 8: "/b"} {
		rec := mapped(0x10000, 0x13000, 0, 0, path)
		rec.PID = pid
		r.Observe(rec)
	}
	for pid, want := range map[int32]string{7: "f() from /a", 8: "f() from /b", 9: "in ??"} {
		if got := r.Process(pid).Text(0x11011); got != want {
			t.Errorf("process %d: got %q, want %q", pid, got, want)
		}
	}
	exec := &trace.Record{Kind: trace.KindExec, PID: 7}
	r.Observe(exec)
	if got := r.Process(7).Text(0x11011) + r.Process(8).Text(0x11011); got != "in ??f() from /b" {
		t.Errorf("after exec of 7: %q", got)
	}

	// Text formats name the process only once, or never.
	r = New(opener(map[string][]byte{"/a": library("aaaa")}))
	r.Observe(mapped(0x10000, 0x13000, 0, 0, "/a"))
	for _, pid := range []int32{0, 7} {
		if got := r.Process(pid).Text(0x11011); got != "f() from /a" {
			t.Errorf("process %d: got %q", pid, got)
		}
	}
}

func TestTooManyMappings(t *testing.T) {
	r := New(Options{})
	for i := range uint64(maxMappings + 10) {
		r.Observe(mapped(i*0x2000, i*0x2000+0x1000, 0, 0, "[x]"))
	}
	if got := r.Stats().Unplaced; got != 10 {
		t.Errorf("%d mappings are left out, want 10", got)
	}
	if got := r.Text((maxMappings-1)*0x2000 + 1); got != "from [x]" {
		t.Errorf("the last mapping: %q", got)
	}
}

func TestName(t *testing.T) {
	r := New(opener(map[string][]byte{"/a": library("aaaa")}))
	r.Observe(mapped(0x10000, 0x13000, 0, 0, "/a"))
	type answer struct {
		name, module string
		ok           bool
	}
	for addr, want := range map[uint64]answer{0x11011: {"f", "/a", true}, 0x11001: {"", "/a", true}, 0x1: {"", "", false}} {
		var got answer
		got.name, got.module, got.ok = r.Name(addr)
		if got != want {
			t.Errorf("%#x: got %+v, want %+v", addr, got, want)
		}
	}
}
