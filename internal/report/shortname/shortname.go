// Package shortname makes names of C++ and Rust functions shorter for people, without
// changing what they distinguish.
package shortname

import (
	"regexp"
	"strings"
)

// replacer replaces what a reader of C++ takes for granted.
var replacer = strings.NewReplacer(
	"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string",
	"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string",
	"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string",
	"std::basic_string_view<char, std::char_traits<char> >", "std::string_view",
	"std::basic_string_view<char, std::char_traits<char>>", "std::string_view",
	"std::__cxx11::", "std::", "std::__1::", "std::", "[abi:cxx11]", "", "(anonymous namespace)", "(anon)",
)

// defaults are the template arguments of the C++ library that are hardly ever given.
var defaults = []string{", std::allocator<", ", std::less<", ", std::hash<", ", std::equal_to<", ", std::default_delete<", ", std::char_traits<"}

// ofRust matches the hash at the end of Rust's legacy names.
var ofRust = regexp.MustCompile(`::h[0-9a-f]{16}$`)

// Of returns a name without the result type, default arguments of templates, inline namespaces
// of libraries and hashes, and with std::string under its own name.
func Of(name string) string {
	if !strings.Contains(name, "::") {
		return name
	}
	name = replacer.Replace(name)
	for _, d := range defaults {
		name = without(name, d)
	}
	return ofRust.ReplaceAllString(withoutResult(strings.ReplaceAll(name, " >", ">")), "")
}

// withoutResult leaves out the result type, which names of templates begin with.
func withoutResult(name string) string {
	if strings.Contains(name, "operator") || strings.HasPrefix(name, "<") {
		return name
	}
	depth, from := 0, 0
	for i := range len(name) {
		switch name[i] {
		case '<', '{':
			depth++
		case '>', '}':
			depth--
		case '(':
			if depth == 0 && !strings.HasPrefix(name[i:], "(anon)") {
				return name[from:]
			}
			depth++
		case ')':
			depth--
		case ' ':
			if depth == 0 {
				from = i + 1
			}
		}
	}
	return name // without parameters there is none
}

// without leaves out arguments that begin with a text, up to the bracket that closes its last
// one, if nothing but the end of the arguments or another one follows.
func without(name, text string) string {
	for at := 0; ; {
		i := strings.Index(name[at:], text)
		if i < 0 {
			return name
		}
		from := at + i
		end := closing(name, from+len(text))
		if end < 0 || !strings.HasPrefix(name[end:], ">") && !strings.HasPrefix(name[end:], " >") && !strings.HasPrefix(name[end:], ", ") {
			at = from + len(text)
			continue
		}
		name, at = name[:from]+name[end:], from
	}
}

// closing returns the index after the bracket that closes the one before an index, or -1.
func closing(name string, at int) int {
	depth := 1
	for i := at; i < len(name); i++ {
		switch name[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
