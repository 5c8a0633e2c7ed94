package callgraph

import "strings"

// short returns the name of a function with () instead of its parameters. It
// does not change names whose last parentheses contain something else, such as
// "(anonymous namespace)".
func short(function string) string {
	end := strings.LastIndexByte(function, ')')
	if end < 0 || !qualifiers(function[end+1:]) {
		return function
	}
	depth := 0
	for i := end; i >= 0; i-- {
		switch function[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if i == 0 || function[i-1] == ' ' {
					return function
				}
				return function[:i] + "()"
			}
		}
	}
	return function
}

// qualifiers reports whether a text may follow the parameters of a function.
func qualifiers(s string) bool {
	for word := range strings.FieldsSeq(s) {
		switch word {
		case "const", "volatile", "&", "&&", "noexcept":
			continue
		}
		// As in "f(int) [clone .cold]".
		if !strings.HasPrefix(word, "[") && !strings.HasSuffix(word, "]") {
			return false
		}
	}
	return true
}
