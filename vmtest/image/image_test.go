package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root makes a small root file system with the links of Debian.
func root(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"usr/bin", "usr/lib/data/sub", "etc/alternatives"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"bin": "usr/bin", "usr/bin/tool": "/etc/alternatives/tool", "etc/alternatives/tool": "../../usr/bin/tool-1",
		"usr/lib/data/dangling": "nowhere", "usr/bin/circle": "circle",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"usr/bin/tool-1": 0o755, "usr/lib/data/sub/file": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// names lists the archive with the cpio program.
func names(t *testing.T, im *Image) []string {
	t.Helper()
	var b bytes.Buffer
	if err := im.Write(&b); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cpio", "-t", "--quiet")
	cmd.Stdin = &b
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v (make test installs cpio)", err)
	}
	return strings.Fields(string(out))
}

func TestPath(t *testing.T) {
	im := New(root(t))
	for _, name := range []string{"/bin/tool", "/usr/lib/data"} {
		if err := im.Path(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := im.Program("tool"); err != nil {
		t.Error(err)
	}
	im.Device("/dev/console", 0o600, 5, 1)
	im.Text("/a/b/c", 0o644, []byte("text"))
	want := []string{
		"a", "a/b", "a/b/c", "bin", "dev", "dev/console", "etc", "etc/alternatives", "etc/alternatives/tool",
		"usr", "usr/bin", "usr/bin/tool", "usr/bin/tool-1", "usr/lib", "usr/lib/data", "usr/lib/data/dangling", "usr/lib/data/sub", "usr/lib/data/sub/file",
	}
	if got := names(t, im); !slices.Equal(got, want) {
		t.Errorf("archive has\n%q, want\n%q", got, want)
	}
	for _, bad := range []string{"/bin/none", "/usr/bin/tool-1/x", "/usr/bin/circle"} {
		if im.Path(bad) == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if im.Program("none") == nil {
		t.Error("program none: no error")
	}
}

// The dynamic loader decides what a program needs: it runs in the image.
func TestProgramHasItsLibraries(t *testing.T) {
	im := New("/")
	if err := im.Program("readelf"); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("readelf")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := names(t, im)
	n := 0
	for line := range strings.Lines(string(out)) {
		for word := range strings.FieldsSeq(line) {
			if !strings.HasPrefix(word, "/") {
				continue
			}
			n++
			file, err := filepath.EvalSymlinks(word)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(got, strings.TrimPrefix(file, "/")) {
				t.Errorf("%s is not in the image", file)
			}
		}
	}
	if n < 2 {
		t.Errorf("ldd prints\n%s", out)
	}
}

// musl's dynamic loader is the C library that its programs need, and no file next to it has
// that library's name.
func TestProgramForMusl(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "empty.c"), filepath.Join(dir, "empty")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("musl-gcc", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v (make test installs musl-tools)\n%s", err, out)
	}
	im := New("/")
	if err := im.File("program", program); err != nil {
		t.Fatal(err)
	}
	loaders, err := filepath.Glob("/lib/ld-musl-*")
	if err != nil || len(loaders) == 0 {
		t.Fatalf("no loader of musl: %v", err)
	}
	file, err := filepath.EvalSymlinks(loaders[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, im); !slices.Contains(got, strings.TrimPrefix(file, "/")) {
		t.Errorf("%s is not among %v", file, got)
	}
}

func TestTree(t *testing.T) {
	im := New("")
	if err := im.Tree("/data", filepath.Join(root(t), "usr", "lib", "data")); err != nil {
		t.Fatal(err)
	}
	if err := im.File("/init", "/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	want := []string{"data", "data/dangling", "data/sub", "data/sub/file", "init"}
	if got := names(t, im); !slices.Equal(got, want) {
		t.Errorf("archive has %q, want %q", got, want)
	}
}

// A file of a folder is added even if it lacks a library, because a program that loads it may
// bring the library.
func TestPathWithoutLibraries(t *testing.T) {
	dir := root(t)
	path, err := exec.LookPath("readelf")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "usr/lib/data/program"), content, 0o755); err != nil {
		t.Fatal(err)
	}
	im := New(dir)
	if err := im.Path("/usr/lib/data"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, im); !slices.Contains(got, "usr/lib/data/program") {
		t.Errorf("archive has %q", got)
	}
	if err := im.Path("/usr/lib/data/program"); err == nil {
		t.Error("a program that is asked for is there without its libraries")
	}
}
