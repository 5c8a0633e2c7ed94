package apt

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSystemMirror(t *testing.T) {
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	tests := map[string]struct {
		files map[string]string
		want  Mirror
		err   bool
	}{
		"paragraphs": {
			files: map[string]string{"sources.list.d/debian.sources": `# a comment
Types: deb deb-src
URIs: http://mirror.test/debian/
Suites: bookworm bookworm-updates
Components: main
Signed-By: ` + keyring + `

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
Signed-By: ` + keyring + "\n"},
			want: Mirror{"http://mirror.test/debian", "http://mirror.test/debian-security", keyring},
		},
		"lines": {
			files: map[string]string{"sources.list": `
# deb http://old.test/debian bookworm main
deb-src http://source.test/debian bookworm main
deb [ arch=amd64 signed-by=` + keyring + ` ] http://mirror.test/debian bookworm main # ours
deb http://security.test/debian-security bookworm-security main
`},
			want: Mirror{"http://mirror.test/debian", "http://security.test/debian-security", keyring},
		},
		"others are not Debian's": {
			files: map[string]string{
				"sources.list.d/a.list": "deb https://vendor.test/apt stable main\n",
				"sources.list.d/b.sources": "Enabled: no\nTypes: deb\nURIs: http://off.test/debian\nSuites: sid\n\n" +
					"Types: deb-src\nURIs: http://source.test/debian\nSuites: sid\n\n" +
					"Types: deb\nURIs: http://mirror.test/debian\nSuites: sid\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n",
			},
			want: Mirror{Archive: "http://mirror.test/debian"},
		},
		"none":   {files: map[string]string{"sources.list": "deb http://vendor.test/ubuntu noble main\n"}, err: true},
		"broken": {files: map[string]string{"sources.list": "deb http://mirror.test/debian\n"}, err: true},
		"colon":  {files: map[string]string{"sources.list.d/x.sources": "Types deb\n"}, err: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range test.files {
				path := filepath.Join(root, "etc", "apt", file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := SystemMirror(root)
			if (err != nil) != test.err {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(test.want, got); err == nil && d != "" {
				t.Errorf("mirror (-want +got):\n%s", d)
			}
		})
	}
}

// A private apt reads and writes only in its folder.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(t.Context(), dir, "arm64", Mirror{Archive: "http://mirror.test/debian", Security: "http://mirror.test/debian-security", Keyring: "/k.gpg"})
	if err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1, 0)
	if err := os.Chtimes(filepath.Join(p.dir, "status"), long, long); err != nil {
		t.Fatal(err)
	}
	if p, err = Open(t.Context(), dir, "arm64", Mirror{Archive: "http://mirror.test/debian", Security: "http://mirror.test/debian-security", Keyring: "/k.gpg"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "status")); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("a file that is as it should be was written again, which makes apt read all lists: %v %v", info, err)
	}
	list, err := os.ReadFile(filepath.Join(p.dir, "sources.list"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "deb [arch=arm64 target=Packages lang=none signed-by=/k.gpg] http://mirror.test/debian-security bullseye-security main\n"
	if !strings.Contains(string(list), want) {
		t.Errorf("sources:\n%s\nwant among them\n%s", list, want)
	}
	if _, err := exec.LookPath("apt-config"); err != nil {
		t.Fatalf("vmtest fetches kernels with apt: %v", err)
	}
	cmd := exec.Command("apt-config", "shell", "A", "Dir::State::lists/d", "B", "Dir::Cache::archives/d", "C", "Dir::Etc::sourcelist/f", "D", "APT::Architecture", "E", "Dir::Etc::sourceparts/d")
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(p.dir, "apt.conf"))
	shell, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	wantShell := "A='" + p.dir + "/lists/'\nB='" + p.dir + "/cache/archives/'\nC='" + p.dir + "/sources.list'\nD='arm64'\nE='" + p.dir + "/no-parts/'\n"
	if d := cmp.Diff(wantShell, string(shell)); d != "" {
		t.Errorf("apt uses (-want +got):\n%s", d)
	}
}

// The system's hooks for updates are not run.
func TestHooks(t *testing.T) {
	p, err := Open(t.Context(), t.TempDir(), "amd64", Mirror{Archive: "http://mirror.test/debian"})
	if err != nil {
		t.Fatal(err)
	}
	system := filepath.Join(t.TempDir(), "apt.conf")
	if err := os.WriteFile(system, []byte(`APT::Update::Post-Invoke { "rm -f /var/cache/apt/*.bin"; };`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("apt-config", "-c", filepath.Join(p.dir, "last.conf"), "dump")
	cmd.Env = append(os.Environ(), "APT_CONFIG="+system)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if hook := regexp.MustCompile(`(?m)^APT::Update::.*Invoke.*`).Find(out); hook != nil {
		t.Errorf("apt would run: %s", hook)
	}
	if !strings.Contains(string(out), `APT::Update::Error-Mode "any"`) {
		t.Error("apt would be content with some of the lists")
	}
}

// Lists are downloaded again when the sources have changed.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		mirror string
		fresh  bool
	}{{"one", false}, {"one", true}, {"two", false}, {"two", true}} {
		p, err := Open(t.Context(), dir, "amd64", Mirror{Archive: "http://" + test.mirror + ".test/debian"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(p.stamp()); (err == nil) != test.fresh {
			t.Errorf("mirror %s: fresh %v, want %v", test.mirror, err == nil, test.fresh)
		}
		if err := os.WriteFile(p.stamp(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Only one process at a time changes the folder.
func TestLock(t *testing.T) {
	p, err := Open(t.Context(), t.TempDir(), "amd64", Mirror{Archive: "http://mirror.test/debian"})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := p.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := p.Download(ctx, Package{Name: "a"}); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		t.Errorf("with the lock held: %v, want to wait", err)
	}
	unlock()
	if unlock, err = p.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestParsePackages(t *testing.T) {
	f, err := os.Open("testdata/search-6.18")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := parsePackages(f)
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{
			Name: "linux-image-6.18.12+deb13-cloud-amd64", Version: "6.18.12-1~bpo13+1", Size: 49127068,
			File:    "pool/main/l/linux-signed-amd64/linux-image-6.18.12+deb13-cloud-amd64_6.18.12-1~bpo13+1_amd64.deb",
			Summary: "Linux 6.18.12 for x86-64 cloud (signed)",
		},
		{
			Name: "linux-image-6.18.15+deb13-cloud-amd64", Version: "6.18.15-1~bpo13+1", Size: 49146196,
			File:    "pool/main/l/linux-signed-amd64/linux-image-6.18.15+deb13-cloud-amd64_6.18.15-1~bpo13+1_amd64.deb",
			Summary: "Linux 6.18.15 for x86-64 cloud (signed)",
		},
	}
	for i := range got { // what follows the summary is not needed
		got[i].Summary, _, _ = strings.Cut(got[i].Summary, ") ")
		if !strings.HasSuffix(got[i].Summary, ")") {
			got[i].Summary += ")"
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("packages (-want +got):\n%s", d)
	}
	for _, bad := range []string{"Package: a\nVersion: 1\n", "Package: a\nSize: 1\n", "nothing\n"} {
		if got, err := parsePackages(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: no error, but %v", bad, got)
		}
	}
}

// Compare the order of versions with dpkg's.
func TestCompareVersions(t *testing.T) {
	versions := []string{
		"7.3~rc7-1~exp1", "7.3.4-1", "7.3.4-1~bpo13+1", "7.3.4-1+b1", "6.12.117-1~deb12u1", "6.12.90+1", "6.12.117-1", "6.1.192-1", "6.1.0-9", "6.1.0-48",
		"6.1.0-0.deb11.52", "1:0.5-1", "0.5", "0.05-0", "0.5-1a", "0.5-a1", "0.5+", "0.5~", "0.5~~", "5.10.262-1",
	}
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Fatalf("dpkg is what this is compared with: %v", err)
	}
	for _, a := range versions {
		for _, b := range versions {
			relation := map[int]string{-1: "lt", 0: "eq", 1: "gt"}[CompareVersions(a, b)]
			if err := exec.Command("dpkg", "--compare-versions", a, relation, b).Run(); err != nil {
				t.Errorf("%s is not %s %s: %v", a, relation, b, err)
			}
		}
	}
}

func TestParseURIs(t *testing.T) {
	out := "Reading package lists...\n" +
		"'http://mirror.test/debian/pool/main/l/libb_2_arm64.deb' libb_2_arm64.deb 20 SHA256:bb\n" +
		"'http://mirror.test/debian/pool/main/a/a_1%2b1_arm64.deb' a_1+1_arm64.deb 10 SHA256:aa\n"
	got, err := parseURIs([]byte(out))
	if d := cmp.Diff([]string{"a_1+1_arm64.deb 10 SHA256:aa", "libb_2_arm64.deb 20 SHA256:bb"}, got); err != nil || d != "" {
		t.Errorf("error %v, files (-want +got):\n%s", err, d)
	}
	for _, bad := range []string{"", "Reading package lists...\n", "'http://mirror.test/x.deb'\n", "'http://mirror.test/x.deb' x.deb\n"} {
		if _, err := parseURIs([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSystemRelease(t *testing.T) {
	for text, want := range map[string]string{
		"ID=debian\nVERSION_CODENAME=bookworm\n": "bookworm",
		"VERSION_CODENAME=\"trixie\"\n":          "trixie",
		"VERSION_CODENAME=forky\n":               "sid", // not released when this was written
		"PRETTY_NAME=\"Debian GNU/Linux\"\n":     "sid",
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "etc", "os-release"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := SystemRelease(root); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := SystemRelease(t.TempDir()); err == nil {
		t.Error("a system without os-release has a release")
	}
}

// The lists of a release are its own, with security updates unless there are none.
func TestOpenRelease(t *testing.T) {
	for release, want := range map[string]string{
		"bookworm": "deb [arch=amd64 target=Packages lang=none] http://mirror.test/debian bookworm main\n" +
			"deb [arch=amd64 target=Packages lang=none] http://mirror.test/debian-security bookworm-security main\n",
		"sid": "deb [arch=amd64 target=Packages lang=none] http://mirror.test/debian sid main\n",
	} {
		mirror := Mirror{Archive: "http://mirror.test/debian", Security: "http://mirror.test/debian-security"}
		p, err := OpenRelease(t.Context(), t.TempDir(), "amd64", mirror, release)
		if err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadFile(filepath.Join(p.dir, "sources.list"))
		if err != nil {
			t.Fatal(err)
		}
		if string(list) != want {
			t.Errorf("%s: sources\n%s\nwant\n%s", release, list, want)
		}
	}
}
