package symbol

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for name, want := range map[string]string{
		"main":                                   "main()",
		"_start":                                 "_start()",
		"f.constprop.0":                          "f.constprop.0()",
		"IA__g_object_ref":                       "g_object_ref()",
		"_ZN4shop4item5priceEiPKc":               "shop::item::price(int, char const*)",
		"_ZN4shop4item5priceEi.cold":             "shop::item::price(int) [clone .cold]",
		"_Z3maxIiET_S0_S0_":                      "int max<int>(int, int)",
		"_ZTv0_n24_N1AD0Ev":                      "virtual thunk to A::~A()",
		"_ZNSt6vectorIiSaIiEEixEm":               "std::vector<int, std::allocator<int> >::operator[](unsigned long)",
		"_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
		"_RNvCs1234_7mycrate3foo":                "mycrate::foo",
		"_ZN3std2io5stdio6_print17h0123456789abcdefE.llvm.1":                                                   "std::io::stdio::_print",
		"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE": "<Test + 'static as foo::Bar<Test>>::bar",
		"_ZN3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE":                                            "foo::{{closure}}",
		"_ZN3foo7a.b$x$y17h0123456789abcdefE":                                                                  "foo::a.b$x$y",
		"_ZN3foo17h0000000000000000E":                                                                          "foo::h0000000000000000",
		"_ZN9foo17h0123456789abcdefE":                                                                          "_ZN9foo17h0123456789abcdefE()",
		"_Z":                                                                                                   "_Z()",
		"_Zzzzzz":                                                                                              "_Zzzzzz()",
		"_R":                                                                                                   "_R()",
		"_GLOBAL_":                                                                                             "_GLOBAL_()",
		"":                                                                                                     "()",
		"a\n1. free(0x1)\x1b[2J\u0085ü":                                                                        "a?1. free(0x1)?[2J?ü()",
		"a@b":                                                                                                  "a@b()",
	} {
		if got := Text(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestDemangleIsBounded(t *testing.T) {
	// Each level doubles the length of the last.
	name := "_Z1f" + strings.Repeat("P", 10) + "i"
	for range 60 {
		name += "3abcIS_S_E"
	}
	for _, name := range []string{name, "_Z" + strings.Repeat("N", 1<<20), "_Z1f" + strings.Repeat("M", maxMangled-10)} {
		if text, _ := Demangle(name); len(text) > max(1<<demangledPow, len(name)) {
			t.Errorf("%d bytes from %d", len(text), len(name))
		}
	}
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"main", "_ZN4shop4item5priceEiPKc", "_RNvCs1234_7mycrate3foo", "_ZN4core3fmt5write17h0123456789abcdefE", "IA__x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text := Text(name)
		if len(text) > 3*max(1<<demangledPow, len(name)+2) { // a broken character becomes three bytes
			t.Errorf("%d bytes from %d", len(text), len(name))
		}
		if strings.ContainsAny(text, "\n\r\x1b\x00") {
			t.Errorf("%q has control characters", text)
		}
		if plain, mangled := Source(name); mangled != (text == plain) && text != plain+"()" {
			t.Errorf("%q printed as %q", plain, text)
		}
	})
}
