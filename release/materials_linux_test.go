package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// materials compares the SBOMs with the modules that the compiler has written into the
// programs, which have the hashes that the SBOMs name.
func (r *release) materials(t *testing.T) {
	dir := t.TempDir()
	name := "rtrace-bpf_" + r.version + "_linux_" + runtime.GOARCH
	output(t, r.dist, "tar", "-C", dir, "--strip-components=2", "-xzf", name+".tar.gz", name+"/bin")
	for _, program := range []string{"rtrace-bpf", "rtrace"} {
		text, err := os.ReadFile(filepath.Join(r.dist, program+strings.TrimPrefix(name, "rtrace-bpf")+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			BOMFormat string
			Metadata  struct {
				Component  struct{ Name, Version string }
				Properties []struct{ Name, Value string }
			}
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		if c := bom.Metadata.Component; bom.BOMFormat != "CycloneDX" || c.Version != r.version {
			t.Errorf("%s: format %q, version %q", program, bom.BOMFormat, c.Version)
		}
		hash, _, _ := strings.Cut(output(t, dir, "sha256sum", program), " ")
		if !slices.Contains(bom.Metadata.Properties, struct{ Name, Value string }{"cdx:gomod:binary:hash:SHA-256", hash}) {
			t.Errorf("%s: the SBOM is of another program", program)
		}
		want := []string{}
		for line := range strings.Lines(output(t, dir, "go", "version", "-m", program)) {
			if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
				want = append(want, f[1]+" "+f[2])
			}
		}
		got := []string{}
		for _, c := range bom.Components {
			if c.Name != "std" {
				got = append(got, c.Name+" "+c.Version)
			}
		}
		if len(got) == len(bom.Components) {
			t.Errorf("%s: the standard library is missing", program)
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: modules %q, want %q", program, got, want)
		}
	}
}
