package topview

import (
	"testing"
	"time"
)

func TestShorten(t *testing.T) {
	const long = "std::_Rb_tree<std::string, std::pair<std::string const, std::vector<int>>, std::less<std::string>>::_M_emplace<char const*>(char const*&&)"
	for _, tt := range []struct {
		text string
		room int
		want string
	}{
		{"main", 4, "main"},
		{"handle(request const&)", 20, "handle(…)"},
		{long, 140, long},
		{long, 130, "std::_Rb_tree<std::string, std::pair<std::string const, std::vector<int>>, std::less<std::string>>::_M_emplace<char const*>(…)"},
		{long, 60, "std::_Rb_tree<…>::_M_emplace<char const*>(…)"},
		{long, 40, "std::_Rb_tree<…>::_M_emplace<…>(…)"},
		{long, 30, "std::_Rb_tree<…M_emplace<…>(…)"},
		{"operator<<(std::ostream&, int)", 15, "operator<<(…)"},
		{"A::operator()(int, long, char) const", 24, "A::operator()(…) const"},
		{"A::operator->(int, long, char)", 16, "A::operator->(…)"},
		{"(anonymous namespace)::f(int, int)", 28, "(anonymous namespace)::f(…)"},
		{"cache_insert_with_long_name (cache.c:12)", 30, "cache_insert_w…me (cache.c:12)"},
		{"ab", 1, "a"},
		{"日本語の関数", 7, "日…関数"},
	} {
		got := shorten(tt.text, tt.room)
		if width(got) > tt.room {
			t.Errorf("%q in %d columns takes %d: %q", tt.text, tt.room, width(got), got)
		}
		if got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.text, tt.room, got, tt.want)
		}
	}
}

// No text is longer than its room, whatever it is.
func FuzzShorten(f *testing.F) {
	f.Add("std::map<int, f(char)>::operator()(int) (x.c:12)", 10)
	f.Add("<<<>>>(((", 3)
	f.Add("operator<operator>()->", 5)
	f.Fuzz(func(t *testing.T, text string, room int) {
		if room < 0 || room > 1000 {
			return
		}
		if got := shorten(text, room); width(got) > room {
			t.Errorf("%q in %d columns: %q takes %d", text, room, got, width(got))
		}
		r := Row{Text: text, Place: &Place{Callers: []string{text, text}}}
		if got := r.fit(room); width(got) > room {
			t.Errorf("%q in %d columns: %q takes %d", text, room, got, width(got))
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Bytes(0), "0 B"},
		{Bytes(1023), "1023 B"},
		{Bytes(1536), "1.5 KiB"},
		{signed(-1536), "-1.5 KiB"},
		{signed(0.2), "0 B"},
		{signed(7), "+7 B"},
		{exact(1 << 30), "1 GiB"},
		{exact(96), "96 B"},
		{Count(0), "0"},
		{Count(2.5), "2.5"},
		{Count(999), "999"},
		{Count(999.7), "1.0k"},
		{Count(12345), "12.3k"},
		{Count(2.5e6), "2.5M"},
		{signedCount(3), "+3"},
		{signedCount(-3), "-3"},
		{clock(3*time.Hour + 25*time.Minute + 7*time.Second), "03:25:07"},
		{spark([]uint64{0, 1, 4, 8}, 6, false), "   ▁▄█"},
		{spark([]uint64{0, 1, 4, 8}, 3, true), ".=#"},
		{spark(nil, 2, true), "  "},
		{tail("日本", 3), "本"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
