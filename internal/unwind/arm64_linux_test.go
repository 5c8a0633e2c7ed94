package unwind

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// armSource has frames of all shapes: a leaf, a frame for calls, one of variable size, saved
// floating-point registers, a large one.
const armSource = `
int g(int); int h(void *); double d(double);
int leaf(int a) { return a * 3; }
int calls(int n) { int r = g(n); return r > 3 ? h(&r) + g(r) : r; }
int sized(int n) { char b[n]; g(n); return h(b); }
double floating(double a) { double x = d(a); return x * a + d(x); }
int large(int n) { char b[1 << 17]; g(n); return h(b); }
`

// TestARM64Compiled compares what clang compiles for arm64 with readelf's output, in both byte
// orders.
func TestARM64Compiled(t *testing.T) {
	clang := testutil.Installed(t, "clang")
	for _, target := range []string{"aarch64-linux-gnu", "aarch64_be-linux-gnu"} {
		for _, flags := range [][]string{{"-O2"}, {"-O0"}, {"-O2", "-fomit-frame-pointer", "-mbranch-protection=pac-ret"}} {
			dir := t.TempDir()
			source, object := filepath.Join(dir, "arm.c"), filepath.Join(dir, "arm.o")
			if err := os.WriteFile(source, []byte(armSource), 0o644); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--target=" + target, "-fasynchronous-unwind-tables", "-c", "-o", object, source}, flags...)
			if out, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
				t.Fatalf("clang for %s: %v\n%s", target, err, out)
			}
			load(t, object)
			compare(t, object)
		}
	}
}

// load turns an object file into a loadable one, as a linker does: all of it is mapped at one
// address.
func load(t *testing.T, path string) {
	t.Helper()
	const base = 0x400000
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o := f.ByteOrder
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	frames, relocations := f.Section(".eh_frame"), f.Section(".rela.eh_frame")
	rela, err := relocations.Data()
	if err != nil {
		t.Fatal(err)
	}
	for ; len(rela) >= 24; rela = rela[24:] { // Elf64_Rela
		at, info := o.Uint64(rela), o.Uint64(rela[8:])
		if elf.R_AARCH64(uint32(info)) != elf.R_AARCH64_PREL32 {
			t.Fatalf("relocation %v", elf.R_AARCH64(uint32(info)))
		}
		s := symbols[info>>32-1]
		value := f.Sections[s.Section].Offset + s.Value + o.Uint64(rela[16:]) - (frames.Offset + at)
		o.PutUint32(data[frames.Offset+at:], uint32(value))
	}
	sections := o.Uint64(data[40:])
	for i, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 {
			o.PutUint64(data[sections+uint64(i)*64+16:], base+s.Offset)
		}
	}
	o.PutUint16(data[16:], uint16(elf.ET_EXEC))
	o.PutUint64(data[32:], uint64(len(data))) // program headers
	o.PutUint16(data[54:], 56)
	o.PutUint16(data[56:], 1)
	header := make([]byte, 56)
	o.PutUint32(header, uint32(elf.PT_LOAD))
	o.PutUint32(header[4:], uint32(elf.PF_R|elf.PF_X))
	for i, v := range []uint64{0, base, base, uint64(len(data)), uint64(len(data)), 8} {
		o.PutUint64(header[8+8*i:], v)
	}
	if err := os.WriteFile(path, append(data, header...), 0o644); err != nil {
		t.Fatal(err)
	}
}
