package suite

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	tests := map[string]struct{ args, kept, files []string }{
		"none": {},
		"go test": {
			args: []string{"-test.testlogfile=/tmp/b001/testlog.txt", "-test.paniconexit0", "-test.timeout=10m0s", "-test.v=true", "-test.run=^TestA$"},
			kept: []string{"-test.timeout=10m0s", "-test.v=true", "-test.run=^TestA$"},
		},
		"coverage": {
			args:  []string{"-test.paniconexit0", "-test.gocoverdir=/tmp/b/gocoverdir", "-test.coverprofile=/tmp/b/_cover_.out", "-test.v"},
			kept:  []string{"-test.gocoverdir=/tmp/b/gocoverdir", "-test.coverprofile=/tmp/b/_cover_.out", "-test.v"},
			files: []string{"/tmp/b/gocoverdir/", "/tmp/b/_cover_.out"},
		},
		"two words": {
			args:  []string{"--test.testlogfile", "/tmp/log", "-test.cpuprofile", "cpu.out", "-test.count=1"},
			kept:  []string{"-test.cpuprofile=/dir/cpu.out", "-test.count=1"},
			files: []string{"/dir/cpu.out"},
		},
		"own arguments": {
			args: []string{"-test.v", "--", "-test.paniconexit0"},
			kept: []string{"-test.v", "--", "-test.paniconexit0"},
		},
		"words": {
			args: []string{"-update", "word", "-test.paniconexit0"},
			kept: []string{"-update", "word", "-test.paniconexit0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kept, files := Arguments(test.args, "/dir")
			if d := cmp.Diff(test.kept, kept); d != "" {
				t.Errorf("kept (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.files, files); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
		})
	}
}
