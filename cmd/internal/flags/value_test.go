package flags

import (
	"strings"
	"testing"
)

// TestValueIsToldPlainly: what is wrong with a value is said without the names of
// Go's functions.
func TestValueIsToldPlainly(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{"--limit=x", `--limit takes a number, not "x"`},
		{"--depth=1.5", `--depth takes a whole number, not "1.5"`},
		{"-dx", `--depth takes a whole number, not "x"`},
		{"--depth=99999999999999999999", `--depth takes a whole number that is not so large, not "99999999999999999999"`},
		{"--pages=-1", `--pages takes a whole number that is not negative, not "-1"`},
		{"--pid=x", `invalid argument "x" for "--pid" flag: strconv.Atoi: parsing "x": invalid syntax`},
		{"--all=maybe", `--all takes yes or no, as true or false, not "maybe"`},
	} {
		var g Groups
		set := g.Group("Flags")
		set.Float64("limit", 1, "")
		set.IntP("depth", "d", 1, "")
		set.Uint64("pages", 1, "")
		set.Bool("all", false, "")
		set.IntSlice("pid", nil, "")
		set.Var(new(Size), "size", "")
		if _, err := g.Parse("test", []string{tt.arg}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v; want %s", tt.arg, err, tt.want)
		}
		// The types of this package say themselves what they take.
		if _, err := g.Parse("test", []string{"--size=1Q"}); err == nil || !strings.Contains(err.Error(), `"1Q" is no size`) {
			t.Errorf("--size: %v", err)
		}
	}
}
