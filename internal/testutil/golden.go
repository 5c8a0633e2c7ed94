package testutil

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// updateFlag is the flag that writes golden files instead of comparing with them. Main declares
// it for packages that do not declare it themselves.
const updateFlag = "update"

func declareUpdate() {
	if flag.Lookup(updateFlag) == nil {
		flag.Bool(updateFlag, false, "write the golden files instead of comparing with them")
	}
}

func updating() bool {
	f := flag.Lookup(updateFlag)
	return f != nil && f.Value.String() == "true"
}

// Golden compares got with the file testdata/name of the package under test,
// or writes the file if the test was run with -update. The package's TestMain
// calls Main, or the package declares the flag.
func Golden(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if updating() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}
