package trace_test

import (
	"testing"

	"rtrace-bpf/trace"
)

func TestProgram(t *testing.T) {
	for _, tt := range []struct{ name, path, want string }{
		{"/usr/bin/demo", "", "demo"},
		{"demo", "/usr/bin/demo", "demo"},
		{"/opt/demo --out=/tmp/file x", "/opt/demo", "demo"},
		{"/opt/a demo", "", "a demo"},
		{"python3 /srv/app.py", "/usr/bin/python3.11", "python3"},
		{"nginx: worker process", "/usr/sbin/nginx", "nginx"},
		{" ", "/bin/x", " "},
		{"", "/bin/x", ""},
		{"/", "", "/"},
	} {
		p := trace.Process{Name: tt.name, Path: tt.path}
		if got := p.Program(); got != tt.want {
			t.Errorf("%q of %q: %q, want %q", tt.name, tt.path, got, tt.want)
		}
	}
}
