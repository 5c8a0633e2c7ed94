package sptext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// editor names frames by their addresses and remembers its calls.
type editor struct {
	seen []string
	name func(addr uint64, old string) string
}

func (e *editor) Observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		e.seen = append(e.seen, "header "+r.Header.Arch)
	case trace.KindProcess:
		e.seen = append(e.seen, fmt.Sprint("process ", r.PID))
	default:
		e.seen = append(e.seen, fmt.Sprintf("%v %#x-%#x %s%s", r.Kind, r.Mapping.Start, r.Mapping.End, r.Mapping.Path, r.Exec.Name))
	}
}

func (e *editor) Filter(old string) string { return old + "F" }

func (e *editor) Frame(addr uint64, old string) string {
	if e.name != nil {
		return e.name(addr, old)
	}
	return fmt.Sprintf("<%#x %s>", addr, old)
}

// keep changes nothing.
type keep struct{ editor }

func (k *keep) Filter(old string) string { return old }

func (k *keep) Frame(_ uint64, old string) string { return old }

func rewrite(text string, e Editor) (string, error) {
	var out bytes.Buffer
	err := Rewrite(context.Background(), &out, strings.NewReader(text), e)
	return out.String(), err
}

func TestRewrite(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no filter", "version=2.0, pid=7, backtrace depth=10, origin=x, \n", "version=2.0, pid=7, filter=F, backtrace depth=10, origin=x, \n"},
		{"a filter", "version=2.0, filter=leaks, origin=x, \n", "version=2.0, filter=leaksF, origin=x, \n"},
		{"an empty filter", "version=2.0, filter=, origin=x, \n", "version=2.0, filter=F, origin=x, \n"},
		{"nothing behind", "version=2.0, pid=7, \n", "version=2.0, pid=7, filter=F, \n"},
		{"no comma at the end", "version=2.0, pid=7\n", "version=2.0, pid=7, filter=F,\n"},
		{"only what is behind", "origin=x, \n", "filter=F, origin=x, \n"},
		{"no header", ": /a => 0x1-0x2\n1. f(1) = 0x2\n\t0x5\n\n", ": /a => 0x1-0x2\n1. f(1) = 0x2\n\t0x5 <0x5 >\n\n"},
		{"frames", "version=2.0\n\t0x5 old text \n\t 0xABC  x\n", "version=2.0, filter=F,\n\t0x5 <0x5 old text >\n\t 0xABC <0xabc x>\n"},
		{"two bytes of line end", "pid=1, \r\n\t0x5\r\n", "pid=1, filter=F, \r\n\t0x5 <0x5 >\r\n"},
		{
			"all else stays", "pid=1, filter=x, \n# temporary\n## kept\n& a : b\n@ 1 : c\n<1> : m (d)\n2. g(0x1)\n3. h(0x2)\n\t$a = b\n\n\xff\x1b[31m\n\x00\n\t0y\n\t\n",
			"pid=1, filter=xF, \n# temporary\n## kept\n& a : b\n@ 1 : c\n<1> : m (d)\n2. g(0x1)\n3. h(0x2)\n\t$a = b\n\n\xff\x1b[31m\n\x00\n\t0y\n\t\n",
		},
	} {
		got, err := rewrite(tt.in, new(editor))
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, d)
		}
	}
}

func TestRewriteObserves(t *testing.T) {
	e := new(editor)
	_, err := rewrite("version=2.0, arch=x86_64, pid=7, \n: /a\\x20b => 0x1-0x2\n## unmapped: /a => 0x3-0x4\n## exec: new\n## other\n: broken\n", e)
	want := []string{"header x86_64", "process 7", "mapping 0x1-0x2 /a b", "unmapping 0x3-0x4 /a", "exec 0x0-0x0 new"}
	if d := cmp.Diff(want, e.seen); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// Texts are quoted as by the format's writer, and read back unchanged.
func TestRewriteQuotes(t *testing.T) {
	text := "a\nb\x1b\\x41\\xzz\x7f"
	got, err := rewrite("pid=1, filter=x, \n\t0x5\n", &editor{name: func(uint64, string) string { return text }})
	if want := "pid=1, filter=xF, \n\t0x5 a\\x0ab\\x1b\\x5cx41\\xzz\\x7f\n"; got != want || err != nil {
		t.Fatalf("%q, want %q, %v", got, want, err)
	}
	again := ""
	_, err = rewrite(got, &editor{name: func(_ uint64, old string) string { again = old; return old }})
	if again != text || err != nil {
		t.Errorf("read back %q, want %q, %v", again, text, err)
	}
}

func TestRewriteErrors(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		err      error
	}{
		{"", "", trace.ErrTruncated},
		{"GARBAGE\n", "", trace.ErrMalformed},
		{"pid=1, filter=, \n\t0x5", "pid=1, filter=F, \n\t0x5", trace.ErrTruncated},
		{"pid=1, filter=, \n12. mal", "pid=1, filter=F, \n12. mal", trace.ErrTruncated},
		{"pid=1, filter=, \n## cut comm", "pid=1, filter=F, \n## cut comm", trace.ErrTruncated},
		{"pid=1", "pid=1", trace.ErrTruncated},
		{"pid=1, filter=, \n## ends with: ## end\n## lost\n", "pid=1, filter=F, \n## ends with: ## end\n## lost\n", trace.ErrUnfinished},
		{"pid=1, filter=, \n## ends with: ## end\n## end\n", "pid=1, filter=F, \n## ends with: ## end\n## end\n", nil},
		{"pid=1, filter=, \n## end\n", "pid=1, filter=F, \n## end\n", nil},
	} {
		got, err := rewrite(tt.in, new(editor))
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q: %q, %v, want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

// A line of any length is copied without using more memory.
func TestRewriteLongLines(t *testing.T) {
	long := strings.Repeat("x", 5*rewriteLine)
	in := "pid=1, filter=, \n## " + long + "\n\t0x5\n\t0x6 " + long + "\n" + long
	want := "pid=1, filter=F, \n## " + long + "\n\t0x5 <0x5 >\n\t0x6 " + long + "\n" + long
	if got, err := rewrite(in, new(editor)); got != want || err != nil {
		t.Errorf("%d bytes, want %d, %v", len(got), len(want), err)
	}
}

// Rewrite writes everything that it has read before it waits for more.
func TestRewriteIsLive(t *testing.T) {
	in, feed := io.Pipe()
	out, w := io.Pipe()
	done := make(chan error)
	go func() {
		err := Rewrite(context.Background(), w, in, new(editor))
		_ = w.Close()
		done <- err
	}()
	go func() { _, _ = feed.Write([]byte("pid=1, \n\t0x5\n")) }()
	want := "pid=1, filter=F, \n\t0x5 <0x5 >\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
	_ = feed.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRewriteEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := Rewrite(ctx, io.Discard, strings.NewReader("pid=1, \n"+strings.Repeat("\n", 1<<16)), new(editor))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzRewrite: an editor that changes nothing gives the same bytes. One that names
// frames gives the same records except for the names.
func FuzzRewrite(f *testing.F) {
	f.Add("version=2.0, arch=x86_64, pid=7, \n: /a => 0x1-0x2\n1. malloc(1) = 0x5\n\t$a = b\n\t0x5 main()\n\t0x6\n\n# x\n")
	f.Add(": /a => 0x1-0x2\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := rewrite(text, new(keep))
		if err == nil && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		named, err2 := rewrite(text, new(editor))
		if errors.Is(err, trace.ErrMalformed) != errors.Is(err2, trace.ErrMalformed) {
			t.Fatalf("%v and %v", err, err2)
		}
		if err != nil {
			return
		}
		load := func(s string) (all []trace.Record) {
			d, err := New(strings.NewReader(s), Options{})
			if err != nil {
				t.Fatal(err)
			}
			records, _ := trace.Load(d)
			for _, r := range records {
				r.Call.Stack.Names, r.Header.Filter = nil, ""
				all = append(all, *r)
			}
			return all
		}
		if d := cmp.Diff(load(text), load(named)); d != "" {
			t.Fatalf("%q became %q\n%s", text, named, d)
		}
	})
}
