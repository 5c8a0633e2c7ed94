package nettrace

// interned makes strings of bytes that occur repeatedly.
type interned struct {
	known map[string]string
	bytes int
}

const maxInterned = 4 << 20

func (t *interned) get(b []byte) string {
	if s, ok := t.known[string(b)]; ok {
		return s
	}
	if t.known == nil || t.bytes > maxInterned {
		t.known, t.bytes = make(map[string]string), 0
	}
	s := string(b)
	t.known[s] = s
	t.bytes += len(s) + 64
	return s
}
