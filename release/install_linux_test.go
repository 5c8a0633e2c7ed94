package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// root is a root directory in which a package is installed, and nothing else.
type root struct {
	dir, bin string // bin is the folder of the programs in dir
	bundle   string // if it is that of a container
	runs     int
	remove   func() // removes the package; nil if there is no program for that
}

// newRoot returns an empty root directory. It needs the rights of a tracer, which suffice to install packages there.
func newRoot(t *testing.T) *root {
	t.Helper()
	testutil.NeedBPF(t)
	return &root{dir: t.TempDir(), bin: "/usr/bin"}
}

// run runs a command in the root directory, or in a container with that. The mounts are in a namespace of
// their own, which ends with the command.
func (r *root) run(t *testing.T, words ...string) string {
	t.Helper()
	if r.bundle != "" {
		return output(t, r.dir, r.container(t, words)...)
	}
	return output(t, r.dir, append([]string{"unshare", "--mount", "sh", "-euc", `
		for fs in dev proc sys; do mkdir -p "$0/$fs"; mount --rbind "/$fs" "$0/$fs"; done
		exec chroot "$0" "$@"`, r.dir}, words...)...)
}

// program loses one block of a size that nothing else has.
const program = `
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline)) void loses(void) { kept = malloc(123456); }
int main(void) { loses(); free(malloc(7)); return 0; }
`

// trace traces a static program in the root directory, and removes the package.
func (r *root) trace(t *testing.T, version string) {
	t.Helper()
	for _, program := range []string{"rtrace-bpf", "rtrace"} {
		if got, want := r.run(t, r.bin+"/"+program, "--version"), program+" "+version+" "; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	built := testutil.BuildText(t, program, "-static", "-g", "-O1", "-fno-builtin", "-fno-omit-frame-pointer")
	output(t, r.dir, "cp", built, filepath.Join(r.dir, "losing"))
	r.run(t, r.bin+"/rtrace-bpf", "-q", "-o", "/trace", "--", "/losing")
	if got := r.run(t, r.bin+"/rtrace", "leaks", "--by", "function", "/trace"); !slices.ContainsFunc(strings.Split(got, "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) > 3 && f[0] == "123456" && f[2] == "1" && f[3] == "loses"
	}) {
		t.Errorf("the lost block is missing:\n%s", got)
	}
	if r.remove == nil {
		return
	}
	r.remove()
	if left := output(t, r.dir, "find", ".", "-name", "*rtrace*"); left != "" {
		t.Errorf("the package leaves files:\n%s", left)
	}
}

// archive unpacks the .tar.gz.
func (r *release) archive(t *testing.T) *root {
	t.Helper()
	to, name := newRoot(t), "rtrace-bpf_"+r.version+"_linux_"+runtime.GOARCH
	output(t, r.dist, "tar", "-C", to.dir, "-xzf", name+".tar.gz")
	to.bin = "/" + name + "/bin"
	return to
}

// deb installs the .deb with dpkg.
func (r *release) deb(t *testing.T) *root {
	t.Helper()
	to := newRoot(t)
	output(t, to.dir, "sh", "-euc", "mkdir -p var/lib/dpkg/info var/lib/dpkg/updates && : >var/lib/dpkg/status")
	output(t, r.dist, "dpkg", "--root="+to.dir, "-i", "rtrace-bpf_"+r.version+"_"+runtime.GOARCH+".deb")
	got := output(t, to.dir, "dpkg-query", "--root="+to.dir, "-W", "-f", "${db:Status-Abbrev}${Version} ${Architecture} ${Maintainer} ${Depends}", "rtrace-bpf")
	if want := "ii " + r.version + " " + runtime.GOARCH + " a <a@demo.example>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if wrong := output(t, to.dir, "dpkg", "--root="+to.dir, "--verify", "rtrace-bpf"); wrong != "" {
		t.Errorf("files differ from the package:\n%s", wrong)
	}
	to.remove = func() { output(t, to.dir, "dpkg", "--root="+to.dir, "--purge", "rtrace-bpf") }
	return to
}

// rpm installs the .rpm with rpm.
func (r *release) rpm(t *testing.T) *root {
	t.Helper()
	to := newRoot(t)
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	rpm := func(args ...string) string {
		return output(t, r.dist, append([]string{"rpm", "--root", to.dir, "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	rpm("-i", "rtrace-bpf-"+r.version+"-1."+machine+".rpm")
	if got, want := rpm("-q", "--qf", "%{VERSION} %{RELEASE} %{ARCH} %{PACKAGER}", "rtrace-bpf"), r.version+" 1 "+machine+" a <a@demo.example>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if wrong := rpm("-V", "rtrace-bpf"); wrong != "" {
		t.Errorf("files differ from the package:\n%s", wrong)
	}
	to.remove = func() { rpm("-e", "rtrace-bpf") }
	return to
}

// image has umoci unpack the image. runc then runs its programs.
func (r *release) image(t *testing.T) *root {
	t.Helper()
	to, layout := newRoot(t), t.TempDir()
	if whole() { // umoci takes images of one architecture
		output(t, r.dist, "skopeo", "copy", "-q", "oci-archive:rtrace-bpf_"+r.version+"_oci.tar", "oci:"+layout+":"+tag(r.version))
	} else {
		output(t, r.dist, "tar", "-C", layout, "-xf", "rtrace-bpf_"+r.version+"_oci.tar")
	}
	bundle := filepath.Join(to.dir, "bundle")
	output(t, r.dist, "umoci", "unpack", "--image", layout+":"+tag(r.version), bundle)
	text, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Process     struct{ Args, Env []string }
		Annotations map[string]string
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if args := config.Process.Args; !slices.Equal(args, []string{"/usr/bin/rtrace-bpf"}) || !slices.Contains(config.Process.Env, "PATH=/usr/bin") {
		t.Errorf("the container would run %q with %q", args, config.Process.Env)
	}
	if got := config.Annotations["org.opencontainers.image.version"]; got != r.version {
		t.Errorf("version %q", got)
	}
	to.dir, to.bundle = filepath.Join(bundle, "rootfs"), bundle
	return to
}

// tag is a version as the tag of an image.
func tag(version string) string { return strings.ReplaceAll(version, "~", "-") }
