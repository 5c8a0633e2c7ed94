package sprtrace

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"rtrace-bpf/trace"
)

// scanner reads the parts of a line.
type scanner struct{ rest string }

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r") }

// atEnd reports whether only a comment or nothing is left.
func (s *scanner) atEnd() bool {
	s.space()
	return s.rest == "" || s.rest[0] == '#'
}

func (s *scanner) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(s.rest, prefix)
	s.rest = rest
	return ok
}

// word returns everything up to the next space.
func (s *scanner) word() string {
	s.space()
	word, rest, _ := strings.Cut(s.rest, " ")
	s.rest = rest
	return strings.TrimRight(word, "\r\t")
}

// span returns the longest prefix of word characters.
func (s *scanner) span() string {
	i := strings.IndexFunc(s.rest, func(r rune) bool {
		return r != '.' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if i < 0 {
		i = len(s.rest)
	}
	word := s.rest[:i]
	s.rest = s.rest[i:]
	return word
}

func (s *scanner) name() (string, error) {
	s.space()
	name := s.span()
	if name == "" || !s.skip("=") {
		return "", malformed("%q where a field should be", s.rest)
	}
	return name, nil
}

func (s *scanner) key(want string) error {
	name, err := s.name()
	if err == nil && name != want {
		err = malformed("field %q instead of %q", name, want)
	}
	return err
}

func (s *scanner) plain(key string) (string, error) {
	if err := s.key(key); err != nil {
		return "", err
	}
	return s.span(), nil
}

func (s *scanner) number(key string, limit uint64) (uint64, error) {
	if err := s.key(key); err != nil {
		return 0, err
	}
	return s.uint(limit)
}

func (s *scanner) uint(limit uint64) (uint64, error) {
	word := s.span()
	v, err := strconv.ParseUint(word, 0, 64)
	if err != nil || v > limit {
		return 0, malformed("number %q is not in 0 to %d", word, limit)
	}
	return v, nil
}

// signed reads a number of 32 bits, with or without a sign.
func (s *scanner) signed() (uint64, error) {
	word := s.span()
	v, err := strconv.ParseInt(word, 0, 64)
	if err != nil || v < math.MinInt32 || v > math.MaxUint32 {
		return 0, malformed("number %q does not fit in 32 bits", word)
	}
	return uint64(v), nil
}

func (s *scanner) hex(key string) ([]byte, error) {
	if err := s.key(key); err != nil {
		return nil, err
	}
	return s.hexDigits()
}

func (s *scanner) hexDigits() ([]byte, error) {
	data, err := hex.DecodeString(s.span())
	if err != nil {
		return nil, malformed("hexadecimal data")
	}
	return data, nil
}

func (s *scanner) quoted() (string, error) {
	q, err := strconv.QuotedPrefix(s.rest)
	if err != nil {
		return "", malformed("%q where a string should be", s.rest)
	}
	s.rest = s.rest[len(q):]
	text, err := strconv.Unquote(q)
	if err != nil {
		return "", malformed("string %s", q)
	}
	return text, nil
}

func (s *scanner) text() (Text, error) {
	if s.skip(wordNull) {
		return Text{Form: TextNull}, nil
	}
	t := Text{Form: TextPadded}
	if s.skip(wordExact) {
		t.Form = TextExact
	}
	text, err := s.quoted()
	if err != nil {
		return t, err
	}
	limit := math.MaxUint16
	if t.Form == TextPadded {
		limit-- // padding makes it 4 n - 2
	}
	if len(text) > limit {
		return t, fmt.Errorf("string of %d bytes: %w", len(text), trace.ErrLimit)
	}
	t.Bytes = []byte(text)
	return t, nil
}

// list reads items in brackets, separated by spaces.
func (s *scanner) list(item func() error) error {
	if !s.skip("[") {
		return malformed("%q where a list should be", s.rest)
	}
	for {
		s.space()
		if s.skip("]") {
			return nil
		}
		if err := item(); err != nil {
			return err
		}
	}
}
