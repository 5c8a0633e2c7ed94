package shortname_test

import (
	"testing"

	"rtrace-bpf/internal/report/shortname"
)

func TestOf(t *testing.T) {
	for name, want := range map[string]string{
		"main":        "main",
		"app::load()": "app::load()",
		"app::Cache::put(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)": "app::Cache::put(std::string const&)",
		"app::name[abi:cxx11]()":                                  "app::name()",
		"app::sum(std::vector<int, std::allocator<int> > const&)": "app::sum(std::vector<int> const&)",
		"app::f(std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> > > >)":       "app::f(std::vector<std::vector<int>>)",
		"app::g(std::map<int, app::T, std::less<int>, std::allocator<std::pair<int const, app::T> > >&)":                              "app::g(std::map<int, app::T>&)",
		"app::h(std::unique_ptr<app::T, std::default_delete<app::T> >)":                                                               "app::h(std::unique_ptr<app::T>)",
		"app::k(std::map<int, int, app::Less, std::allocator<int> >)":                                                                 "app::k(std::map<int, int, app::Less>)",
		"(anonymous namespace)::f(unsigned long)":                                                                                     "(anon)::f(unsigned long)",
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >* app::copy<int>(int const&) [clone .isra.0]": "app::copy<int>(int const&) [clone .isra.0]",
		"void app::run<app::T>(app::T const*) const":                                                                                  "app::run<app::T>(app::T const*) const",
		"std::ostream& app::operator<< <int>(std::ostream&, int)":                                                                     "std::ostream& app::operator<< <int>(std::ostream&, int)",
		"unsigned long (anonymous namespace)::f<int>()":                                                                               "(anon)::f<int>()",
		"shop::load::h0123456789abcdef":                                                                                               "shop::load",
		"<shop::Order as core::clone::Clone>::clone":                                                                                  "<shop::Order as core::clone::Clone>::clone",
		"app::odd(std::pair<int, std::allocator<int":                                                                                  "app::odd(std::pair<int, std::allocator<int",
		"app::Pool<int, std::allocator<int>::pointer>::get()":                                                                         "app::Pool<int, std::allocator<int>::pointer>::get()",
	} {
		if got := shortname.Of(name); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
