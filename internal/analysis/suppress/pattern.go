package suppress

import "strings"

// pattern is a pattern of LeakSanitizer: a part of a text, in which * stands for any
// characters. It may begin with ^ and end with $, the ends of the text.
type pattern string

// in reports whether a text has the pattern. An empty text has none.
func (p pattern) in(text string) bool {
	if text == "" {
		return false
	}
	want, from := strings.CutPrefix(string(p), "^")
	want, to := strings.CutSuffix(want, "$")
	if !from {
		want = "*" + want
	}
	if !to {
		want += "*"
	}
	return matches(want, text, false)
}

// glob reports whether a text is what a pattern of valgrind describes, in which * stands for any
// characters and ? for one. An empty text never is.
func glob(want, text string) bool { return text != "" && matches(want, text, true) }

// matches reports whether a text is what a pattern with * and, if one is set, ? describes. It
// takes time in proportion to the product of both lengths at most.
func matches(want, text string, one bool) bool {
	star, back := -1, 0 // the last *, and how much of text it stands for
	w, t := 0, 0
	for t < len(text) {
		switch {
		case w < len(want) && want[w] == '*':
			star, back = w, t
			w++
		case w < len(want) && (want[w] == text[t] || one && want[w] == '?'):
			w++
			t++
		case star >= 0:
			back++
			w, t = star+1, back
		default:
			return false
		}
	}
	return strings.Trim(want[w:], "*") == ""
}
