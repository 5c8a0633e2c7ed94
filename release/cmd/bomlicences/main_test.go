package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithLicences(t *testing.T) {
	text, err := withLicences([]byte(`{"version": 1, "metadata": {"tools": [7], "component": {"name": "rtrace-bpf"}}, "components": [
		{"name": "std"}, {"name": "golang.org/x/sys", "licenses": [{"license": {"id": "BSD-Source-Code"}}]}, {"name": "example.org/a", "licenses": [{"license": {"id": "MIT"}}]}]}`), "A AND (B OR C)")
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"version": 1, "metadata": {"tools": [7], "component": {"name": "rtrace-bpf", "licenses": [{"expression": "A AND (B OR C)"}]}}, "components": [
		{"name": "std", "licenses": [{"license": {"id": "BSD-3-Clause"}}]}, {"name": "golang.org/x/sys", "licenses": [{"license": {"id": "BSD-3-Clause"}}]},
		{"name": "example.org/a", "licenses": [{"license": {"id": "MIT"}}]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, wrong := range []string{`{}`, `[`, `{"metadata": {"component": {}}, "components": [{"name": "example.org/a"}]}`} {
		if _, err := withLicences([]byte(wrong), "A"); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

// The texts of the corrected modules are those of the licences that they get.
func TestCorrected(t *testing.T) {
	marks := map[string][]string{
		"BSD-3-Clause": {"Redistributions of source code must retain", "Redistributions in binary form must reproduce", "may be used to endorse or promote products"},
		"Apache-2.0":   {"Apache License", "Grant of Patent License"},
		"MIT":          {"Permission is hereby granted, free of charge", "The above copyright notice and this permission notice shall be included"},
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "golang.org/x/sys", "golang.org/x/arch", "golang.org/x/sync", "github.com/klauspost/compress").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		words, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(words)), " ")
		for licence := range strings.SplitSeq(licenceOf(module), " AND ") {
			if len(marks[licence]) == 0 {
				t.Errorf("%s: %q", module, licence)
			}
			for _, mark := range marks[licence] {
				if !strings.Contains(text, mark) {
					t.Errorf("%s: the text of %s does not contain %q", module, licence, mark)
				}
			}
		}
	}
}
