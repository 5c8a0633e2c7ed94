package functions

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFunction(t *testing.T) {
	for text, want := range map[string]Function{
		"libc.so.6:open(sd)d":          {Place: Place{"libc.so.6", "open", 0}, Args: "sd", Result: 'd'},
		":main()":                      {Place: Place{"", "main", 0}, Args: "", Result: 0},
		"/a/b.so:ns::f(int, char)(d)v": {Place: Place{"/a/b.so", "ns::f(int, char)", 0}, Args: "d", Result: 'v'},
		"x:operator()(p)n":             {Place: Place{"x", "operator()", 0}, Args: "p", Result: 'n'},
		"x:T::operator()(int)(pd)n":    {Place: Place{"x", "T::operator()(int)", 0}, Args: "pd", Result: 'n'},
		"x:+0x1fA(bcdxpsfw)s":          {Place: Place{"x", "", 0x1fa}, Args: "bcdxpsfw", Result: 's'},
	} {
		got, err := ParseFunction(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{"", "main()d", "::main()d", "x:()d", "x:f)(d", "x:f+0x1(d)d", "x:f(" + strings.Repeat("d", 17) + ")", "x:f(F)", "x:f()f"} {
		if f, err := ParseFunction(text); err == nil {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestParseValue(t *testing.T) {
	for text, want := range map[string]Value{
		":f@0=rdi/8":                           {Place{"", "f", 0}, 0, 8, "rdi", nil},
		"a.so:f+0x10@4294967295=[x0]/512":      {Place{"a.so", "f", 0x10}, 4294967295, 512, "x0", []int64{0}},
		"a:+0x99@7=[[[rsp-0x10]+8]]/1":         {Place{"a", "", 0x99}, 7, 1, "rsp", []int64{-16, 8, 0}},
		"a:ns::operator/=(int)@3=[rbp+1]/2":    {Place{"a", "ns::operator/=(int)", 0}, 3, 2, "rbp", []int64{1}},
		"a:sym@@VERSION+0x4@3=[[rbp-1]-0x2]/2": {Place{"a", "sym@@VERSION", 4}, 3, 2, "rbp", []int64{-1, -2}},
	} {
		got, err := ParseValue(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, expression := range []string{"", "[", "[]", "rdi]", "[rdi", "[rdi]]", "rdi+8", "[rdi]+8", "[rdi+]", "[rdi+x]", "[[rdi]8]", "[rdi+8+8]", strings.Repeat("[", 9) + "rdi" + strings.Repeat("]", 9)} {
		if v, err := ParseValue(":f@1=" + expression + "/4"); err == nil {
			t.Errorf("%q: %+v", expression, v)
		}
	}
}

// Letters and registers depend on the programs' machine.
func TestCheck(t *testing.T) {
	float := Function{Args: "dw"}
	if err := float.Check(false); err == nil || !strings.Contains(err.Error(), "argument 2 (w)") {
		t.Errorf("a double in a register: %v", err)
	}
	if err := float.Check(true); err != nil {
		t.Errorf("a double on the stack: %v", err)
	}
	wide := Function{Args: strings.Repeat("w", 9)}
	if err := wide.Check(true); err == nil {
		t.Error("18 words")
	}
	if err := (&Value{Register: "esp", Size: 8}).Check(true); err == nil {
		t.Error("a register of 32 bits has no 8 bytes")
	}
	if err := (&Value{Register: "ecx", Size: 4}).Check(true); err != nil {
		t.Error(err)
	}
	name := "r15"
	if runtime.GOARCH == "arm64" {
		name = "x30"
	}
	if err := (&Value{Register: name, Size: 8}).Check(false); err != nil {
		t.Error(err)
	}
}
