package oci

import (
	"regexp"
	"strings"
	"testing"
)

// Tags have the form that registries accept.
func TestTag(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	for version, want := range map[string]string{
		"1.2.3":                        "1.2.3",
		"1.2.3+4+gabc":                 "1.2.3-4-gabc",
		"0~20261128.abc":               "0-20261128.abc",
		"1" + strings.Repeat("+", 200): "1" + strings.Repeat("-", 127),
	} {
		if got := Tag(version); got != want || !valid.MatchString(got) {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
