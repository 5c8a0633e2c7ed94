package result

import (
	"fmt"
	"regexp"
	"strings"
)

// Unmatched returns the alternatives of a pattern, in the form of go test -run, that match the
// name of no test that ran: the test was renamed or never existed. It adds a failure for them
// to each run that had tests. go test must have accepted the pattern.
func Unmatched(pattern string, runs []*Run) []string {
	var out []string
	for _, alternative := range split(pattern, '|') {
		if alternative != "" && !matchesAny(split(alternative, '/'), runs) {
			out = append(out, alternative)
		}
	}
	for _, r := range runs {
		if len(r.Tests) == 0 {
			continue
		}
		for _, name := range out {
			r.Tests = append(r.Tests, &Test{Package: "all packages", Output: fmt.Sprintf("no test has the name %s\n", name)})
		}
	}
	return out
}

func matchesAny(parts []string, runs []*Run) bool {
	for _, r := range runs {
		for _, t := range r.Tests {
			if t.Name != "" && matches(parts, strings.Split(t.Name, "/")) {
				return true
			}
		}
	}
	return false
}

// matches reports whether each part matches its element of a test's name.
func matches(parts, name []string) bool {
	if len(name) < len(parts) {
		return false
	}
	for i, part := range parts {
		if ok, err := regexp.MatchString(part, name[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// split splits a pattern at a separator that is not in brackets or parentheses, like package
// testing.
func split(pattern string, at byte) []string {
	var out []string
	start, brackets, parentheses := 0, 0, 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			brackets++
		case c == ']':
			brackets = max(0, brackets-1) // an unmatched one stands for itself
		case c == '(' && brackets == 0:
			parentheses++
		case c == ')' && brackets == 0:
			parentheses--
		case c == at && brackets == 0 && parentheses == 0:
			out = append(out, pattern[start:i])
			start = i + 1
		}
	}
	return append(out, pattern[start:])
}
