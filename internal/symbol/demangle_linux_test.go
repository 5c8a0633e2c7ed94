package symbol

import (
	"strings"
	"testing"
)

// TestDemangleLikeBinutils compares the names in a C++ program that includes
// the C++ library with those of nm, which sp-rtrace's resolver prints, too.
func TestDemangleLikeBinutils(t *testing.T) {
	path := compile(t, "names.cc", "-O0", "-static")
	names := strings.Split(run(t, "", "nm", "-p", path), "\n")
	wants := strings.Split(run(t, "", "nm", "-p", "-C", path), "\n")
	// The two put different spaces between closing brackets and after empty packs.
	brackets := strings.NewReplacer("> >", ">>", ", >", ">")
	compared := 0
	for i, line := range names {
		const column = 19 // value, type
		if len(line) < column || !strings.HasPrefix(line[column:], "_Z") {
			continue
		}
		name := line[column:]
		if strings.Contains(name, "CI1") || strings.Contains(name, "CI2") {
			continue // nm gives inherited constructors the name of the class they come from
		}
		compared++
		want, _, _ := strings.Cut(wants[i][column:], "@")
		if got, _ := Demangle(name); brackets.Replace(got) != brackets.Replace(want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
	if compared < 500 {
		t.Errorf("only %d names compared", compared)
	}
}
