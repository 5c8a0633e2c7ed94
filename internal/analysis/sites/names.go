package sites

import "strings"

// Names numbers strings from 1. The zero value is empty.
type Names struct {
	ids   map[string]uint32
	texts []string
}

// Add returns the number of a string, which it copies if it is new.
func (t *Names) Add(s string) uint32 {
	if id, ok := t.ids[s]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = make(map[string]uint32)
	}
	s = strings.Clone(s)
	t.texts = append(t.texts, s)
	id := uint32(len(t.texts))
	t.ids[s] = id
	return id
}

// Text returns the string with a number from Add.
func (t *Names) Text(id uint32) string { return t.texts[id-1] }

// Len returns the number of strings.
func (t *Names) Len() int { return len(t.texts) }
