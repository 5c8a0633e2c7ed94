package release

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestRelease makes a release of these sources, installs each package in an empty root
// directory and traces a program there, and makes the release again elsewhere: all files are
// equal.
func TestRelease(t *testing.T) {
	testutil.Extra(t, "two releases are made, which takes a minute")
	dir := t.TempDir()
	repository(t, filepath.Join(dir, "one"))
	first := place{"022", "UTC", "C", ""}
	r := &release{dist: first.build(t, filepath.Join(dir, "one"))}
	r.version = output(t, filepath.Join(dir, "one"), ".ci/version")
	if !strings.HasPrefix(r.version, version) {
		t.Fatalf("version %s, want %s and the revision", r.version, version)
	}
	t.Run("files", r.names)
	t.Run("tar.gz", func(t *testing.T) { r.archive(t).trace(t, r.version) })
	t.Run("deb", func(t *testing.T) { r.deb(t).trace(t, r.version) })
	t.Run("rpm", func(t *testing.T) { r.rpm(t).trace(t, r.version) })
	t.Run("image", func(t *testing.T) { r.image(t).trace(t, r.version) })
	t.Run("bill of materials", r.materials)
	t.Run("signature", func(t *testing.T) { r.sign(t, filepath.Join(dir, "one")) })
	t.Run("again", func(t *testing.T) {
		second := filepath.Join(dir, "a longer path", "two")
		output(t, dir, "sh", "-euc", `umask 077 && mkdir -p "$(dirname "$1")" && git clone -q "$0" "$1"`, filepath.Join(dir, "one"), second)
		other := place{umask: "077", zone: "Asia/Tokyo", locale: "C.UTF-8"}
		if whole() {
			other.cache = filepath.Join(dir, "cache")
		}
		same(t, r.dist, other.build(t, second))
	})
	t.Run("archive of git", func(t *testing.T) {
		sources := filepath.Join(dir, "archive")
		output(t, filepath.Join(dir, "one"), "sh", "-euc", `mkdir "$0" && git archive HEAD | tar -C "$0" -xf -`, sources)
		output(t, sources, "make", "build")
		for _, program := range []string{"rtrace", "rtrace-bpf"} {
			if got, want := output(t, sources, "bin/"+program, "--version"), program+" "+r.version+" go1."; !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// release is one that was made.
type release struct{ dist, version string }

// names checks that dist has exactly the files that it should, and that SHA256SUMS has all.
func (r *release) names(t *testing.T) {
	v := r.version
	want := []string{"SHA256SUMS", "rtrace-bpf_" + v + "_oci.tar"}
	for arch := range strings.FieldsSeq(arches()) {
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
		want = append(want, "rtrace-bpf_"+v+"_linux_"+arch+".tar.gz", "rtrace-bpf_"+v+"_"+arch+".deb", "rtrace-bpf-"+v+"-1."+machine+".rpm",
			"rtrace-bpf_"+v+"_linux_"+arch+".cdx.json", "rtrace_"+v+"_linux_"+arch+".cdx.json")
	}
	slices.Sort(want)
	got := files(t, r.dist)
	if !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	sums := output(t, r.dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	if n := len(strings.Split(sums, "\n")); n != len(want)-1 {
		t.Errorf("SHA256SUMS has %d files of %d:\n%s", n, len(want)-1, sums)
	}
}

// files returns the names in a folder, in order.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// same compares two folders.
func same(t *testing.T, one, two string) {
	t.Helper()
	names := files(t, one)
	if others := files(t, two); !slices.Equal(names, others) {
		t.Errorf("files %q and %q", names, others)
	}
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(two, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d and %d bytes, %v", name, len(a), len(b), err)
		}
	}
}

// sign signs the checksums with a new key and verifies them. A changed file is not signed.
func (r *release) sign(t *testing.T, sources string) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	output(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	output(t, sources, "make", "sign", "SIGN=ssh-keygen -q -Y sign -n file -f "+key)
	sums := filepath.Join(r.dist, "SHA256SUMS")
	defer os.Remove(sums + ".sig")
	output(t, dir, "sh", "-euc", `echo "a@demo.example $(cat key.pub)" >signers && ssh-keygen -q -Y verify -f signers -I a@demo.example -n file -s "$0.sig" <"$0"`, sums)
	changed := filepath.Join(r.dist, "rtrace-bpf_"+r.version+"_linux_"+runtime.GOARCH+".cdx.json")
	text, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile(changed, text, 0o644) }() // the comparison of both releases would fail
	if out := output(t, sources, "sh", "-c", "make sign SIGN='echo signed' 2>&1 || echo refused"); !strings.HasSuffix(out, "refused") || strings.Contains(out, "signed\n") {
		t.Errorf("a changed file was signed:\n%s", out)
	}
}
