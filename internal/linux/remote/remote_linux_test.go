package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// Variables that make the test binary another program, for the process ID that they hold.
const (
	listening = "RTRACE_REMOTE_TEST_LISTEN" // prints what it did
	telling   = "RTRACE_REMOTE_TEST_TELL"
)

func TestMain(m *testing.M) {
	if pid, err := strconv.Atoi(os.Getenv(listening)); err == nil {
		if _, err := Listen([]int{pid}, func(Request) (string, error) { return "all is done", nil }); err != nil {
			panic(err)
		}
		fmt.Println("ready")
		select {}
	}
	if pid, err := strconv.Atoi(os.Getenv(telling)); err == nil {
		answers, err := Send(context.Background(), Request{PID: pid})
		fmt.Printf("%q %v\n", answers, err)
		os.Exit(0)
	}
	testutil.Main(m)
}

// asNobody returns the test binary, to be run by a user without rights.
func asNobody(t *testing.T, what string, pid int) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can be another user")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", what, pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

func listen(t *testing.T, pids []int, handle func(Request) (string, error)) *Listener {
	t.Helper()
	l, err := Listen(pids, handle)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRequests(t *testing.T) {
	var got []Request
	l := listen(t, []int{5, 6}, func(r Request) (string, error) {
		got = append(got, r)
		if r.PID == 6 {
			return "", errors.New("not now")
		}
		return "done it", nil
	})
	ctx := context.Background()
	answers, err := Send(ctx, Request{PID: 5})
	if err != nil || !slices.Equal(answers, []string{"done it"}) {
		t.Errorf("%q, %v", answers, err)
	}
	if _, err := Send(ctx, Request{PID: 6, Mark: "a name  with blanks "}); err == nil || err.Error() != "not now" {
		t.Errorf("%v, want the error of the tracer", err)
	}
	if _, err := Send(ctx, Request{PID: 7}); !errors.Is(err, ErrNotTraced) {
		t.Errorf("%v, want ErrNotTraced", err)
	}
	if want := []Request{{5, ""}, {6, "a name  with blanks "}}; !slices.Equal(got, want) {
		t.Errorf("heard %+v, want %+v", got, want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Send(ctx, Request{PID: 5}); !errors.Is(err, ErrNotTraced) {
		t.Errorf("after the end: %v, want ErrNotTraced", err)
	}
}

// A caller can stop waiting for an answer that does not come.
func TestGiveUp(t *testing.T) {
	heard, answer := make(chan bool), make(chan bool)
	l := listen(t, []int{5}, func(Request) (string, error) {
		heard <- true
		<-answer
		return "", nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-heard
		cancel()
	}()
	if _, err := Send(ctx, Request{PID: 5}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	close(answer)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Neither the answers nor the requests of another user are accepted.
func TestOtherUsers(t *testing.T) {
	l := listen(t, []int{5}, func(Request) (string, error) { return "done for anybody", nil })
	defer l.Close()
	child := testutil.Start(t, asNobody(t, telling, 5))
	child.Succeed()
	if out := string(child.Output()); !strings.Contains(out, ErrNotTraced.Error()) {
		t.Errorf("another user got the answer %s", out)
	}
	cmd := asNobody(t, listening, 9)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if answers, err := Send(context.Background(), Request{PID: 9}); !errors.Is(err, ErrNotTraced) {
		t.Errorf("another user's answer is accepted: %q, %v", answers, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"toggle 5", "mark 5 name", "mark 5", "toggle 5 x", "mark 5 ", "toggle -1", "mark 5 a\nb", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := parse(text)
		if ok && (r.Check() != nil || r.PID <= 0) {
			t.Errorf("%q is taken for %v", text, r)
		}
		if again, same := parse(r.text()); ok && (!same || again != r) {
			t.Errorf("%q becomes %v and %v", text, r, again)
		}
	})
}
