package postproc

import (
	"strings"
	"testing"
)

func TestCheckPiped(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"-l -c -s size":          "",
		"-lcs size --resource=f": "",
		"-b 3 -qa":               "",
		"--include-nothing":      "unknown flag",
		"-lZ":                    "unknown flag -Z",
		"-o x":                   "x is a place to write to",
		"-ox":                    "x is a place to write to",
		"-lo /x":                 "/x is a place to write to",
		"-l -o/x":                "/x is a place to write to",
		"-lo=/x":                 "/x is a place to write to",
		"--output-dir=/x":        "/x is a place to write to",
		"--output-dir /x -l":     "/x is a place to write to",
		"-i /x":                  "/x is a file to read",
		"-ci/x":                  "/x is a file to read",
		"--input-file /x":        "/x is a file to read",
		"-l /x":                  "/x is a file to read",
		"-- -l":                  "-l is a file to read",
		"-s":                     "-s: the value is missing",
		"-b x":                   "not a whole number",
		"--help":                 "help",
		"--exclude -o":           "",
		"-R -o":                  "",
	} {
		err := CheckPiped(strings.Fields(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
