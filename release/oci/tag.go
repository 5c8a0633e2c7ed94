package oci

import "strings"

// maxTag is the greatest length of a tag (distribution specification 1.1).
const maxTag = 128

// Tag returns a version as a tag. A tag may have neither ~ nor +: they become hyphens.
func Tag(version string) string {
	tag := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.':
			return c
		}
		return '-'
	}, version)
	return tag[:min(len(tag), maxTag)]
}
