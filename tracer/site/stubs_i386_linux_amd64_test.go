package site

import (
	"bytes"
	"debug/elf"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// compile32 builds 32-bit code from C and returns the file's path.
func compile32(t *testing.T, source string, flags ...string) string {
	t.Helper()
	if !testutil.Has32Bit() {
		t.Skip("this run only builds programs, for another machine")
	}
	return testutil.BuildText(t, source, append([]string{"-m32"}, flags...)...)
}

func execute(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v (32-bit tests need gcc-multilib and binutils)\n%s", program, strings.Join(args, " "), err, &errs)
	}
	return out
}

// TestStubs finds the slots of PLT stubs. A result is right if objdump names the stub and readelf
// the slot after the same function.
func TestStubs(t *testing.T) {
	const source = `
#include <stdlib.h>
void *pointer(void) { return free; } /* its stub, if any, has the slot of the pointer */
void *again(void *p, size_t n) { free(p); return realloc(calloc(n, 2), malloc(n) != NULL); }
int main(void) { return again(NULL, 1) == pointer(); }`
	for _, flags := range []string{
		"-shared -fPIC", "-shared -fPIC -Wl,-z,now", "-shared -fPIC -fcf-protection -Wl,-z,ibtplt",
		"-shared -fPIC -fuse-ld=gold", "-pie -fPIE", "-no-pie -fno-pic", "-no-pie -fno-pic -fcf-protection -Wl,-z,ibtplt",
		"-no-pie -fno-pic -Wl,-z,now",
	} {
		t.Run(flags, func(t *testing.T) {
			path := compile32(t, source, append(strings.Fields(flags), "-O2")...)
			slots := map[string]uint64{}
			for line := range strings.Lines(string(execute(t, "readelf", "-rW", path))) {
				w := strings.Fields(line)
				if len(w) == 5 && strings.HasPrefix(w[2], "R_386_") {
					name, _, _ := strings.Cut(w[4], "@")
					slots[name], _ = strconv.ParseUint(w[0], 16, 64)
				}
			}
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			o := Options{Arch: I386}
			if got, err := f.DynValue(elf.DT_PLTGOT); err == nil && len(got) == 1 {
				o.GOT = got[0]
			}
			found := 0
			for line := range strings.Lines(string(execute(t, "objdump", "-d", path))) {
				addr, label, _ := strings.Cut(strings.TrimSpace(line), " <")
				name, stub := strings.CutSuffix(label, "@plt>:")
				if !stub || slots[name] == 0 {
					continue
				}
				at, err := strconv.ParseUint(addr, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				s, err := Choose(o, Function{Name: name, Entry: at, Code: bytesAt(t, f, at, 16)})
				if err != nil || s.Thunk == nil || s.Thunk.Slot != slots[name] {
					t.Errorf("stub of %s at %#x: %+v, %v, want slot %#x", name, at, s.Thunk, err, slots[name])
				}
				found++
			}
			if found < 4 {
				t.Errorf("%d stubs found, slots %#x", found, slots)
			}
		})
	}
}

// bytesAt reads code of a file.
func bytesAt(t *testing.T, f *elf.File, addr uint64, n int) []byte {
	t.Helper()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr+uint64(n) <= p.Vaddr+p.Filesz {
			b := make([]byte, n)
			if _, err := p.ReadAt(b, int64(addr-p.Vaddr)); err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	t.Fatalf("no %d bytes at %#x", n, addr)
	return nil
}
