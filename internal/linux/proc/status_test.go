package proc

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStatus(t *testing.T) {
	tests := []struct {
		name, text string
		want       Status
	}{
		{
			"all fields",
			"Name:\tmy prog\\n\\\\x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t10\nNgid:\t0\nPid:\t12\nPPid:\t1\nTracerPid:\t99\n" +
				"Uid:\t1000\t0\t1001\t4294967295\nGid:\t0\t0\t0\t0\nNSpid:\t12\t7\t1\nThreads:\t3\nCapEff:\t000001fffeffffff\n" +
				"Seccomp:\t2\nSeccomp_filters:\t1\nx86_Thread_features:\tshstk wrss \nx86_Thread_features_locked:\tshstk \n",
			Status{
				Name: "my prog\n\\x", State: 'S', PID: 12, TGID: 10, PPID: 1, TracerPID: 99, Threads: 3,
				UID: [4]uint32{1000, 0, 1001, 1<<32 - 1}, CapEff: 0x1fffeffffff, Seccomp: SeccompFilter,
				NSPID: []int{12, 7, 1}, ThreadFeatures: []string{"shstk", "wrss"},
			},
		},
		{
			"old kernel", "Name:\tx\nState:\tZ (zombie)\nTgid:\t1\nPid:\t1\n",
			Status{Name: "x", State: StateZombie, PID: 1, TGID: 1, Seccomp: SeccompUnknown},
		},
		{
			"name with tab, colon and space at its ends", "Name:\t\t a: b \nState:\tR (running)\nTgid:\t1\nPid:\t1\nSeccomp:\t0\nx86_Thread_features:\t\n",
			Status{Name: "\t a: b ", State: 'R', PID: 1, TGID: 1, Seccomp: SeccompDisabled, ThreadFeatures: []string{}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseStatus([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if want := strings.Contains(tt.text, "shstk"); got.ShadowStack() != want {
				t.Errorf("shadow stack %v, want %v", got.ShadowStack(), want)
			}
		})
	}
}

func TestParseStatusErrors(t *testing.T) {
	const good = "Name:\tx\nState:\tZ (zombie)\nTgid:\t1\nPid:\t1\n"
	for _, bad := range []string{
		"", "Name:\tx\nState:\tS\nTgid:\t1\n", good + "State:\t\n", good + "Pid:\t\n", good + "Uid:\t1\t2\t3\n",
		good + "Uid:\t1\t2\t3\t-4\n", good + "CapEff:\tx\n", good + "NSpid:\t1\tx\n", good + "Threads:\t99999999999\n",
	} {
		if _, err := ParseStatus([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v, want ErrSyntax", bad, err)
		}
	}
}

func TestParseStat(t *testing.T) {
	const tail = " 1 2 3 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8613 1 2 3"
	tests := []struct {
		name, text string
		want       Stat
		kernel     bool
	}{
		{"plain", "42 (cat) R" + tail, Stat{PID: 42, Name: "cat", State: 'R', PPID: 1, Flags: 4194560, Start: 8613}, false},
		{"name with parentheses", "42 (a) (b ) Z" + tail, Stat{PID: 42, Name: "a) (b ", State: 'Z', PPID: 1, Flags: 4194560, Start: 8613}, false},
		{
			"kernel thread", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 2 0 0\n",
			Stat{PID: 2, Name: "kthreadd", State: 'S', Flags: 2129984, Start: 2},
			true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseStat([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got.KernelThread() != tt.kernel {
				t.Errorf("kernel thread %v, want %v", got.KernelThread(), tt.kernel)
			}
		})
	}
	for _, bad := range []string{"", "42 cat R" + tail, "x (cat) R" + tail, "42 )cat( R" + tail, "42 (cat) R 1 2 3", "42 (cat) R 1 2 3 0 -1 x 1 2 3 4 5 6 7 8 20 0 1 0 8613"} {
		if _, err := ParseStat([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v, want ErrSyntax", bad, err)
		}
	}
}

func TestParseCmdline(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "a\x00": {"a"}, "a\x00\x00b c\x00": {"a", "", "b c"}, "title without end": {"title without end"}, "\x00": {""},
	} {
		if diff := cmp.Diff(want, ParseCmdline([]byte(text))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Name:\tx\nState:\tZ (zombie)\nTgid:\t1\nPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t1\nCapEff:\t0\nx86_Thread_features:\tshstk\n"))
	f.Add([]byte("42 (a) (b ) Z 1 2 3 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8613"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := ParseStatus(text); err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Errorf("error %v is not ErrSyntax", err)
			}
		} else if s.State == 0 {
			t.Error("no state and no error")
		}
		if _, err := ParseStat(text); err != nil && !errors.Is(err, ErrSyntax) {
			t.Errorf("error %v is not ErrSyntax", err)
		}
		args := ParseCmdline(text)
		if got := strings.Join(args, "\x00"); got != strings.TrimSuffix(string(text), "\x00") {
			t.Errorf("arguments %q joined are not the text", args)
		}
	})
}
