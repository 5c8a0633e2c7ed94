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
		"-o x":                   "x is an output",
		"-ox":                    "x is an output",
		"-lo /x":                 "/x is an output",
		"-l -o/x":                "/x is an output",
		"-lo=/x":                 "/x is an output",
		"--output-dir=/x":        "/x is an output",
		"--output-dir /x -l":     "/x is an output",
		"-i /x":                  "/x is an input file",
		"-ci/x":                  "/x is an input file",
		"--input-file /x":        "/x is an input file",
		"-l /x":                  "/x is an input file",
		"-- -l":                  "-l is an input file",
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
