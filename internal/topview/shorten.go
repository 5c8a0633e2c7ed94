package topview

import "strings"

// gap stands for what is left out of a name.
const gap = "…"

// Shorten returns the name of a function, or a text with one, that fits into some columns. It
// leaves out what distinguishes least.
func Shorten(s string, room int) string { return shorten(s, room) }

// plainGap stands for it where there are only ASCII characters. It has as many columns.
const plainGap = "~"

// shorten returns a text that fits into some columns. It leaves out what distinguishes least: the
// parameters of functions, then the arguments of templates, the longest first, and then the
// middle.
func shorten(s string, room int) string {
	if width(s) <= room {
		return s
	}
	for _, brackets := range []string{"()", "<>"} {
		for width(s) > room {
			short, ok := emptied(s, brackets[0], brackets[1])
			if !ok {
				break
			}
			s = short
		}
	}
	if width(s) <= room {
		return s
	}
	if room < 3 {
		return head(s, room)
	}
	left := (room - 1) / 2
	begin := head(s, left)
	end := tail(s, room-1-width(begin))
	return strings.TrimSuffix(begin, gap) + gap + strings.TrimPrefix(end, gap)
}

// cut returns a text that fits into some columns. It leaves out the end.
func cut(s string, room int) string {
	if width(s) <= room {
		return s
	}
	return head(s, max(0, room-1)) + gap
}

// emptied replaces the longest contents of a pair of brackets. ok is false if there is
// nothing longer than the gap.
func emptied(s string, open, closing byte) (short string, ok bool) {
	from, to := 0, 0
	for start := 0; start < len(s); start++ {
		if s[start] != open || isOperator(s, start) {
			continue
		}
		end := closed(s, start, open, closing)
		if end < 0 {
			continue
		}
		inner := s[start+1 : end]
		if keeps(inner) {
			continue
		}
		if end-start > to-from {
			from, to = start, end
		}
		start = end
	}
	if to == 0 {
		return s, false
	}
	return s[:from+1] + gap + s[to:], true
}

// keeps reports whether the contents of brackets are not worth a gap, or say where a function
// is.
func keeps(inner string) bool {
	return width(inner) <= 1 || inner == "anonymous namespace" || strings.Contains(inner, ":") && !strings.Contains(inner, "::") && !strings.Contains(inner, " ")
}

// closed returns the place of the bracket that closes the one at start, -1 if there is none.
func closed(s string, start int, open, closing byte) int {
	depth := 0
	for i := start; i < len(s); i++ {
		switch {
		case isOperator(s, i):
		case s[i] == open:
			depth++
		case s[i] == closing:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// isOperator reports whether an angle bracket or parenthesis belongs to the name of an
// operator, such as operator< or operator->, or to an arrow.
func isOperator(s string, i int) bool {
	if s[i] == '>' && i > 0 && s[i-1] == '-' {
		return true
	}
	at := strings.LastIndex(s[:i], "operator")
	return at >= 0 && strings.Trim(s[at+len("operator"):i], "<>=-()") == "" && i-at-len("operator") < 2 && !strings.Contains(s[at+len("operator"):i], ")")
}
