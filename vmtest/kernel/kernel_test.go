package kernel

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"rtrace-bpf/vmtest/apt"
)

// listed reads the recorded output of apt-cache for a suite: lines of name, version, and
// perhaps a word of the summary.
func listed(t *testing.T, pattern string) []apt.Package {
	t.Helper()
	text, err := os.ReadFile("testdata/packages")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(pattern)
	var all []apt.Package
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) != 3 {
			t.Fatalf("line %q", line)
		}
		if names.MatchString(f[0]) {
			all = append(all, apt.Package{Name: f[0], Version: f[1], Summary: f[2]})
		}
	}
	return all
}

func TestChoose(t *testing.T) {
	tests := []struct{ series, flavour, arch, image, modules string }{
		{"5.10", Cloud, "amd64", "linux-image-5.10.0-46-cloud-amd64", ""},
		{"5.10", Generic, "amd64", "linux-image-5.10.0-46-amd64", ""},
		{"6.1", Cloud, "amd64", "linux-image-6.1.0-56-cloud-amd64", ""},
		{"6.1", Generic, "amd64", "linux-image-6.1.0-56-amd64", ""},
		{"6.1", Cloud, "arm64", "linux-image-6.1.0-56-cloud-arm64", ""},
		{"6.12", Cloud, "amd64", "linux-image-6.12.117+deb13-cloud-amd64", ""},
		{"6.18", Cloud, "amd64", "linux-image-6.18.15+deb13-cloud-amd64", ""},
		{"6.19", Cloud, "amd64", "linux-binary-6.19.14+deb13-cloud-amd64", ""}, // its modules are not signed, and in another package,
		{"7.2", Generic, "amd64", "linux-binary-7.2.13+deb14-amd64", "linux-modules-7.2.13+deb14-amd64"},
		{"7.3", Cloud, "amd64", "linux-binary-7.3.4+deb13-cloud-amd64", "linux-modules-7.3.4+deb13-cloud-amd64"},
		{"7", Cloud, "amd64", "linux-binary-7.3.4+deb13-cloud-amd64", "linux-modules-7.3.4+deb13-cloud-amd64"},
		{"6.6", Cloud, "amd64", "", ""},
	}
	for _, test := range tests {
		t.Run(test.series+"-"+test.flavour+"-"+test.arch, func(t *testing.T) {
			pattern, err := Pattern(test.series, test.flavour, test.arch)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Choose(listed(t, pattern))
			if test.image == "" {
				if !errors.Is(err, ErrNotServed) {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Image.Name != test.image || got.Modules.Name != test.modules {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A release candidate is chosen only if there is nothing else.
func TestChooseCandidate(t *testing.T) {
	got, err := Choose([]apt.Package{{Name: "linux-image-7.3-cloud-amd64", Version: "7.3~rc7-1~exp1"}, {Name: "linux-binary-7.3-cloud-amd64", Version: "7.3~rc7-1~exp1"}})
	if err != nil || got.Image.Name != "linux-binary-7.3-cloud-amd64" || got.Release() != "7.3-cloud-amd64" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPatternErrors(t *testing.T) {
	for _, bad := range []string{"", "6.", "6.1.2", ".*", "6.1 6.12"} {
		if p, err := Pattern(bad, Cloud, "amd64"); err == nil {
			t.Errorf("%q: no error, but %s", bad, p)
		}
	}
}
