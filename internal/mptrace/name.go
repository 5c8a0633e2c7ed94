package mptrace

import "unicode/utf8"

// appendPrintable appends a name with the bytes of its control characters as
// \x1b, including U+0080 to U+009F and single bytes of these values. Other
// bytes that are not UTF-8 stay, because names may be in any encoding.
func appendPrintable(dst []byte, name string) []byte {
	from := 0 // name[from:] is not appended yet
	for i := 0; i < len(name); {
		c := name[i]
		if c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			if full, size := utf8.DecodeRuneInString(name[i:]); size > 1 {
				r, n = full, size
			}
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			dst = append(dst, name[from:i]...)
			for _, c := range []byte(name[i : i+n]) {
				dst = append(dst, '\\', 'x', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
			from = i + n
		}
		i += n
	}
	return append(dst, name[from:]...)
}
