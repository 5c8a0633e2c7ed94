package jsonl_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// The format's page lists exactly the keys with which each kind is written.
func TestPageListsAllKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/jsonl.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(page), "\n### ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		for name := range strings.SplitSeq(title, ", ") {
			sections[name] = body
		}
	}
	keysOf := func(section string) map[string]bool {
		keys := map[string]bool{}
		for line := range strings.Lines(section) {
			if cells := strings.Split(line, "|"); len(cells) > 2 {
				for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
					keys[m[1]] = true
				}
			}
		}
		return keys
	}
	common := keysOf(sections["All kinds"])
	full := testutil.FullRecord()
	for kind := range testutil.Payloads {
		full.Kind = kind
		_, line, _ := strings.Cut(string(encode(t, full)), "\n")
		var written map[string]any
		if err := json.Unmarshal([]byte(line), &written); err != nil {
			t.Fatal(err)
		}
		if _, ok := sections[kind.String()]; !ok {
			t.Errorf("%v has no section", kind)
			continue
		}
		listed := keysOf(sections[kind.String()])
		for key := range written {
			if !common[key] && !listed[key] {
				t.Errorf("%v: key %s is written, but not on the page", kind, key)
			}
			delete(listed, key)
		}
		for key := range listed {
			t.Errorf("%v: key %s is on the page, but not written", kind, key)
		}
	}
}
