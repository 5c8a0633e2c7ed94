package release

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// component is a module in an SBOM.
type component struct {
	Name, Version string
	Licenses      []struct {
		Expression string
		License    struct{ ID string }
	}
}

// licence returns the licence of a component as an SPDX expression.
func (c *component) licence() string {
	if len(c.Licenses) != 1 {
		return ""
	}
	return cmp.Or(c.Licenses[0].Expression, c.Licenses[0].License.ID)
}

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
				Component  component
				Properties []struct{ Name, Value string }
			}
			Components []component
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		licences := map[string]string{"rtrace-bpf": "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)", "rtrace": "Apache-2.0"}
		if c := bom.Metadata.Component; bom.BOMFormat != "CycloneDX" || c.Version != r.version || c.licence() != licences[program] {
			t.Errorf("%s: format %q, version %q, licence %q", program, bom.BOMFormat, c.Version, c.licence())
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
			if c.licence() == "" {
				t.Errorf("%s: %s has no licence", program, c.Name)
			}
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
