package testutil

import (
	"regexp"
	"strings"
	"testing"
)

// goWords matches words of Go's libraries, which mean nothing to the user of a program.
var goWords = regexp.MustCompile(`strconv|pars(e|ing)\b|time:|invalid (argument|syntax|duration|value)|missing unit|out of range|pflag|shorthand|\b(u?int|float)(8|16|32|64)?\b|\bbool\b|\bstring(s|Slice|Array)?\b|%!|\bnil\b|&\{|0x?c0[0-9a-f]{8}`)

// PlainUsage checks that a message about the value of a flag names the flag and does not come
// from one of Go's libraries.
func PlainUsage(t testing.TB, message string, names ...string) {
	t.Helper()
	if word := goWords.FindString(message); word != "" {
		t.Errorf("%q is no word for a user: %s", word, message)
	}
	for _, name := range names {
		if strings.Contains(message, name) {
			return
		}
	}
	t.Errorf("none of %q is named: %s", names, message)
}
