package swap

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// lexer splits a line of a dump.
type lexer struct{ rest string }

// word returns the next word: up to a blank or the end of a list.
func (l *lexer) word() string {
	l.rest = strings.TrimLeft(l.rest, " \t\r")
	return l.token(" \t\r]}")
}

// value returns the value after a name, which may be empty.
func (l *lexer) value() string { return l.token(" \t\r]}") }

// token returns everything up to one of the given characters.
func (l *lexer) token(ends string) string {
	n := strings.IndexAny(l.rest, ends)
	if n < 0 {
		n = len(l.rest)
	}
	token := l.rest[:n]
	l.rest = l.rest[n:]
	return token
}

// skip skips text if the line continues with it, and reports whether it does.
func (l *lexer) skip(text string) bool {
	rest, ok := strings.CutPrefix(l.rest, text)
	l.rest = rest
	return ok
}

// has skips " name=" if it comes next, and reports whether it did.
func (l *lexer) has(name string) bool {
	l.rest = strings.TrimLeft(l.rest, " \t\r")
	return l.skip(name + "=")
}

// key skips " name=". It returns an error if something else comes next.
func (l *lexer) key(name string) error {
	if !l.has(name) {
		return malformed("%.40q where %s= should be", l.rest, name)
	}
	return nil
}

// end checks that only a comment follows.
func (l *lexer) end() error {
	l.rest = strings.TrimLeft(l.rest, " \t\r")
	if l.rest != "" && l.rest[0] != '#' {
		return malformed("%.40q at the end of the line", l.rest)
	}
	return nil
}

func (l *lexer) uint(bits int) (uint64, error) {
	w := l.value()
	n, err := strconv.ParseUint(w, 0, bits)
	if err != nil {
		return 0, malformed("number %.40q", w)
	}
	return n, nil
}

func (l *lexer) int(bits int) (uint64, error) {
	w := l.value()
	n, err := strconv.ParseInt(w, 0, bits)
	if err != nil {
		return 0, malformed("number %.40q", w)
	}
	return uint64(n), nil
}

func (l *lexer) hex() ([]byte, error) {
	w := l.value()
	b, err := hex.DecodeString(w)
	if err != nil {
		return nil, malformed("hexadecimal data %.40q", w)
	}
	return b, nil
}

// quoted reads a quoted string. cut reports whether it has no NUL.
func (l *lexer) quoted() (text []byte, cut bool, err error) {
	cut = l.skip(wordCut)
	quoted, err := strconv.QuotedPrefix(l.rest)
	if err != nil {
		return nil, false, malformed("%.40q where a text should be", l.rest)
	}
	l.rest = l.rest[len(quoted):]
	s, err := strconv.Unquote(quoted)
	if err != nil || strings.Contains(s, "\x00") {
		return nil, false, malformed("text %.40s", quoted)
	}
	return []byte(s), cut, nil
}

// clock reads SECONDS.NANOSECONDS.
func (l *lexer) clock() (seconds, nanos uint32, err error) {
	w := l.value()
	a, b, _ := strings.Cut(w, ".")
	s, err1 := strconv.ParseUint(a, 10, 32)
	n, err2 := strconv.ParseUint(b, 10, 32)
	if err1 != nil || err2 != nil || len(b) < 9 {
		return 0, 0, malformed("time %.40q", w)
	}
	return uint32(s), uint32(n), nil
}
