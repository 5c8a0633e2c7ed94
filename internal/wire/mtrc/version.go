package mtrc

// FormatVersion returns a version word as text: 10501 is 1.5.1.
func FormatVersion(v uint64) string {
	b := make([]byte, 0, 24)
	b = append(appendNumber(b, v/10000), '.')
	b = append(appendNumber(b, v/100%100), '.')
	return string(appendNumber(b, v%100))
}

func appendNumber(b []byte, v uint64) []byte {
	if v >= 10 {
		b = appendNumber(b, v/10)
	}
	return append(b, byte('0'+v%10))
}

// ParseVersion parses the text of a version as FormatVersion returns it. ok is
// false if it is not one.
func ParseVersion(text string) (v uint64, ok bool) {
	var parts [3]uint64
	part := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.' && part < 2:
			part++
		case c >= '0' && c <= '9' && parts[part] < 1<<32:
			parts[part] = parts[part]*10 + uint64(c-'0')
		default:
			return 0, false
		}
	}
	v = parts[0]*10000 + parts[1]*100 + parts[2]
	return v, FormatVersion(v) == text
}
