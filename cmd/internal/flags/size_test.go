package flags

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "4096": 4096, "8M": 8 << 20, "3k": 3 << 10, "1G": 1 << 30, "9223372036854775808": 1 << 63} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "K", "-1", "1.5M", "8Q", "9007199254740993K", "18446744073709551616"} {
		var s Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
	for n, want := range map[Size]string{0: "0", 10: "10", 1024: "1K", 2 << 20: "2M", 3 << 30: "3G", 1<<20 + 1024: "1025K", 1 << 40: "1024G"} {
		if got := n.Text(); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	s, zero := Size(4096), Size(0)
	if s.String() != "4096" || zero.String() != "" || s.Type() != "BYTES" {
		t.Errorf("%q, %q, %q", s.String(), zero.String(), s.Type())
	}
}
