package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRootsOf(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []uint32
	}{
		"the first namespace": {"         0          0 4294967295\n", []uint32{0}},
		"a container":         {"         0     100000      65536\n", []uint32{100000}},
		"root comes later":    {"      1000          0          1\n         0       1000          1\n", []uint32{1000}},
		"without root":        {"      1000       1000          1\n", nil},
		"none":                {"", nil},
		"no numbers":          {"x y z\n", nil},
	} {
		if d := cmp.Diff(tt.want, rootsOf([]byte(tt.text))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestMayHaveMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made := func() bool {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return MayHaveMade(os.Getpid(), info)
	}
	if !made() {
		t.Error("a file of our own was not made by us")
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to give files away")
	}
	if err := os.Chown(path, 54321, 0); err != nil {
		t.Fatal(err)
	}
	if made() {
		t.Error("a file of somebody else was made by us")
	}
}
