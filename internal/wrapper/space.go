package wrapper

import (
	"slices"
	"strings"
)

// librarySpaces are the namespaces of C++ libraries.
var librarySpaces = []string{"std", "__gnu_cxx", "__gnu_debug", "__cxxabiv1"}

// rustSpaces are the crates of Rust's libraries, and of the table that HashMap is made of.
var rustSpaces = []string{"alloc", "core", "std", "hashbrown", "__rustc"}

func isLibrarySpace(name string) bool { return slices.Contains(librarySpaces, name) }

// inMangledSpace reports whether a mangled C++ name belongs to a namespace of C++
// libraries. In the Itanium ABI a nested name is _ZN, qualifiers, and the names with their
// lengths. std has the short form St, and its most used classes Sa, Sb, Ss, Si, So and Sd.
// A local name has a Z before its function.
func inMangledSpace(name string) bool {
	rest, ok := strings.CutPrefix(name, "_Z")
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, "Z")
	if nested, ok := strings.CutPrefix(rest, "N"); ok {
		rest = strings.TrimLeft(nested, "rVKRO")
		for _, space := range [...]string{"9__gnu_cxx", "11__gnu_debug", "10__cxxabiv1"} {
			if strings.HasPrefix(rest, space) {
				return true
			}
		}
	}
	return len(rest) > 1 && rest[0] == 'S' && strings.IndexByte("tabsiod", rest[1]) >= 0
}

// ofRust reports whether a name is that of a function of Rust's libraries. Names of Rust
// have a path and no parameters. A method of a trait has the name <type as trait>::method. It
// belongs to the library of its type, or, if the type is a parameter or a part of the
// language, to that of the trait.
func ofRust(name string) bool {
	if !strings.Contains(name, "::") || outside(name, '(') >= 0 {
		return false
	}
	of, ok := strings.CutPrefix(name, "<")
	if !ok {
		return inRustSpace(name)
	}
	if end := closing(of); end >= 0 {
		of = of[:end]
	}
	self, trait, ok := cutOutside(of, " as ")
	if !strings.Contains(self, "::") && ok {
		return inRustSpace(trait)
	}
	return inRustSpace(strings.TrimLeft(self, "&*[(<"))
}

func inRustSpace(path string) bool {
	space, _, ok := strings.Cut(path, "::")
	return ok && slices.Contains(rustSpaces, space)
}

// qualified returns the name of a function from a demangled one, without its result type
// and parameters.
func qualified(name string) string {
	if at := strings.Index(name, "operator "); at == 0 {
		return name
	}
	depth, start := 0, 0
	for i := range len(name) {
		switch name[i] {
		case '<':
			depth++
		case '>':
			depth--
		case '(':
			if depth == 0 && i > 0 && !strings.HasPrefix(name[i:], "(anonymous namespace)") {
				return name[start:i]
			}
			depth++
		case ')':
			depth--
		case ' ':
			if depth == 0 && !strings.HasSuffix(name[start:i], "operator") {
				start = i + 1
			}
		}
	}
	return name[start:]
}

// untemplated returns a name without the arguments of its template.
func untemplated(name string) string {
	if !strings.HasSuffix(name, ">") || strings.Contains(name, "operator") {
		return name
	}
	if at := outside(name, '<'); at > 0 {
		return name[:at]
	}
	return name
}

// outside returns the index of the first byte c that is in no angle brackets, or -1.
func outside(s string, c byte) int {
	depth := 0
	for i := range len(s) {
		switch {
		case s[i] == c && depth == 0:
			return i
		case s[i] == '<':
			depth++
		case s[i] == '>' && (i == 0 || s[i-1] != '-'):
			depth--
		}
	}
	return -1
}

// closing returns the index of the bracket that closes the one before s, or -1.
func closing(s string) int {
	depth := 1
	for i := range len(s) {
		switch {
		case s[i] == '<':
			depth++
		case s[i] == '>' && (i == 0 || s[i-1] != '-'):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// cutOutside cuts s at the first separator that is in no angle brackets.
func cutOutside(s, separator string) (before, after string, ok bool) {
	for i := 0; i < len(s); {
		at := strings.Index(s[i:], separator)
		if at < 0 {
			break
		}
		if strings.Count(s[:i+at], "<") == strings.Count(s[:i+at], ">")-strings.Count(s[:i+at], "->") {
			return s[:i+at], s[i+at+len(separator):], true
		}
		i += at + 1
	}
	return s, "", false
}
