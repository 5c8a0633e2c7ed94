package callgraph

import "testing"

func TestShort(t *testing.T) {
	for name, want := range map[string]string{
		"main":                          "main",
		"main()":                        "main()",
		"f(int)":                        "f()",
		"A::f(int, char) const":         "A::f()",
		"A::f(int) const &":             "A::f()",
		"f(int) [clone .cold]":          "f()",
		"f(void (*)(int), int)":         "f()",
		"A::operator()(int) const":      "A::operator()()",
		"operator new[](unsigned long)": "operator new[]()",
		"std::vector<int, std::allocator<int> >::at(unsigned long)": "std::vector<int, std::allocator<int> >::at()",
		"(anonymous namespace)::f(int)":                             "(anonymous namespace)::f()",
		"(anonymous namespace)::x":                                  "(anonymous namespace)::x",
		"f(int)::{lambda(char)#1}::operator()(char) const":          "f(int)::{lambda(char)#1}::operator()()",
		"f(int)::x":                            "f(int)::x",
		"void (*f(int))(char)":                 "void (*f(int))()",
		"(int)":                                "(int)",
		"f)":                                   "f)",
		"f(":                                   "f(",
		"":                                     "",
		"<a::B as c::D>::e":                    "<a::B as c::D>::e",
		"decltype (f(1)) g<int>(int) noexcept": "decltype (f(1)) g<int>()",
	} {
		if got := short(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
