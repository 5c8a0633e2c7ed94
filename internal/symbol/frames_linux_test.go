package symbol

import (
	"bytes"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestFrames compares sections with what debug/elf reads.
func TestFrames(t *testing.T) {
	path := compile(t, "funcs.c", "-g", "-fno-asynchronous-unwind-tables")
	files := map[string]string{"plain": path}
	for _, method := range []string{"zlib", "zstd"} {
		packed := filepath.Join(t.TempDir(), method)
		if out, err := exec.Command("objcopy", "--compress-debug-sections="+method, path, packed).CombinedOutput(); err != nil {
			t.Logf("no %s: %s", method, out)
			continue
		}
		files[method] = packed
	}
	for name, path := range files {
		want, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		eh, err := f.EHFrame()
		if err != nil || !eh.EH || !bytes.Equal(eh.Data, contents(t, want, ".eh_frame")) || eh.Addr != want.Section(".eh_frame").Addr {
			t.Errorf("%s: .eh_frame has %d bytes at %#x, %v", name, len(eh.Data), eh.Addr, err)
		}
		if eh.Text != want.Section(".text").Addr || eh.Got != want.Section(".got").Addr {
			t.Errorf("%s: .text at %#x, .got at %#x", name, eh.Text, eh.Got)
		}
		debug, err := f.DebugFrame()
		if err != nil || debug.EH || !bytes.Equal(debug.Data, contents(t, want, ".debug_frame")) || debug.Addr != 0 {
			t.Errorf("%s: .debug_frame has %d bytes at %#x, %v", name, len(debug.Data), debug.Addr, err)
		}
	}
}

func contents(t *testing.T, f *elf.File, name string) []byte {
	t.Helper()
	s := f.Section(name)
	if s == nil {
		t.Fatalf("no %s", name)
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAlone(t *testing.T) {
	for flags, want := range map[string]bool{"-static": true, "-static-pie": true, "-no-pie": false, "-nostdlib -shared": true} {
		f, err := Open(compile(t, "funcs.c", append(strings.Fields(flags), "-fPIC")...))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := f.Alone(); got != want {
			t.Errorf("%s: Alone() = %v", flags, got)
		}
	}
}

// TestGOT compares GOT with the symbol that linkers define at the address that ebx holds.
func TestGOT(t *testing.T) {
	for _, flags := range []string{
		"-m32 -shared", "-m32 -shared -Wl,-z,now", "-m32 -shared -fno-plt", "-m32 -pie", "-m32 -no-pie",
		"-m32 -shared -fuse-ld=gold", "-m32 -shared -fuse-ld=gold -Wl,-z,now",
	} {
		path := compile(t, "funcs.c", append(strings.Fields(flags), "-fPIC")...)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var want uint64
		for line := range strings.Lines(run(t, "", "readelf", "-sW", path)) {
			if w := strings.Fields(line); len(w) == 8 && w[7] == "_GLOBAL_OFFSET_TABLE_" {
				want, _ = strconv.ParseUint(w[1], 16, 64)
			}
		}
		if got := f.GOT(); got != want || want == 0 {
			t.Errorf("%s: GOT at %#x, want %#x", flags, got, want)
		}
	}
	f, err := Open(compile(t, "funcs.c", "-static"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.GOT(); got != 0 {
		t.Errorf("static: GOT at %#x", got)
	}
}
