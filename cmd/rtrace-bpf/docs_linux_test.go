package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/cli/rtrace-bpf.md")

// The command's page is made from its flags: go test ./cmd/rtrace-bpf -run
// Docs -update refreshes it.
func TestDocs(t *testing.T) {
	var want bytes.Buffer
	if err := new(config).page().WriteMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/cli/rtrace-bpf.md"
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s is stale; -update refreshes it (-want +got)\n%s", path, diff)
	}
}
