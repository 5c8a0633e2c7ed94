package testutil

import (
	"flag"
	"os"
	"testing"
)

func TestGolden(t *testing.T) {
	t.Chdir(t.TempDir())
	set := func(value string) {
		if err := flag.Set(updateFlag, value); err != nil {
			t.Fatal(err)
		}
	}
	set("true")
	Golden(t, "deep/file.txt", []byte("one\ntwo\n"))
	set("false")
	Golden(t, "deep/file.txt", []byte("one\ntwo\n"))
	if text, err := os.ReadFile("testdata/deep/file.txt"); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("golden file: %q, %v", text, err)
	}
	if got := fatal(func(r *recorder) { Golden(r, "deep/file.txt", []byte("one\n2\n")) }); got == "" {
		t.Error("a difference was not seen")
	}
	if got := fatal(func(r *recorder) { Golden(r, "none.txt", nil) }); got == "" {
		t.Error("a missing golden file was not seen")
	}
}
