package sptext

import (
	"bytes"
	"strings"
)

// texts makes strings of the texts in lines, which are quoted except in legacy mode.
type texts struct {
	legacy   bool
	interned map[string]string
}

// unquote returns a text with each group \xNN replaced by the byte that it stands for.
// It is for texts of the header and of registries, which are not interned.
func (t *texts) unquote(b []byte) string {
	if t.legacy || bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	return unquoted(b)
}

// text is unquote for strings that occur repeatedly.
func (t *texts) text(b []byte) string {
	if t.legacy || bytes.IndexByte(b, '\\') < 0 {
		return t.intern(b)
	}
	return unquoted(b)
}

func unquoted(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && len(b)-i >= 4 && b[i+1] == 'x' && hexValue[b[i+2]] < 16 && hexValue[b[i+3]] < 16 {
			s.WriteByte(hexValue[b[i+2]]<<4 | hexValue[b[i+3]])
			i += 3
			continue
		}
		s.WriteByte(b[i])
	}
	return s.String()
}

// intern returns b as a string. It returns the same string for the same bytes, up to a
// limit of the number of strings.
func (t *texts) intern(b []byte) string {
	if s, ok := t.interned[string(b)]; ok {
		return s
	}
	if len(t.interned) >= maxInterned {
		clear(t.interned)
	}
	s := string(b)
	t.interned[s] = s
	return s
}
