package debuginfod_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rtrace-bpf/internal/debuginfod"
)

// server answers requests for files and counts them.
func server(t *testing.T, files map[string]string) (*httptest.Server, func() []string) {
	t.Helper()
	var (
		mu    sync.Mutex
		asked []string
	)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		text, ok := files[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case text == "error":
			http.Error(w, "no", http.StatusInternalServerError)
		case text == "cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "short")
		case text == "endless":
			for range 1000 {
				fmt.Fprint(w, strings.Repeat("x", 1000))
			}
		case text == "stuck":
			<-r.Context().Done()
		default:
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(s.Close)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

func TestFetch(t *testing.T) {
	ctx := context.Background()
	first, _ := server(t, nil)
	s, asked := server(t, map[string]string{"/buildid/abcd/debuginfo": "debug", "/buildid/abcd/executable": "program"})
	dir := t.TempDir()
	c := &debuginfod.Client{URLs: []string{first.URL, s.URL}, Folder: dir, Warn: func(err error) { t.Error(err) }}
	for range 2 {
		for debug, want := range map[bool]string{true: "debug", false: "program"} {
			got, err := os.ReadFile(c.Fetch(ctx, "abcd", debug))
			if err != nil || string(got) != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		}
		if path := c.Fetch(ctx, "abce", true); path != "" {
			t.Errorf("a file that no server has is %s", path)
		}
	}
	if got := asked(); len(got) != 3 {
		t.Errorf("asked for %q: each file once", got)
	}
	// Another process finds the files without asking a server.
	s.Close()
	other := &debuginfod.Client{URLs: []string{s.URL}, Folder: dir}
	if other.Fetch(ctx, "abcd", true) == "" {
		t.Error("not cached")
	}
	for _, id := range []string{"", "ab", "../abcd", "abcd/", "ABCD", strings.Repeat("a", 200)} {
		if path := c.Fetch(ctx, id, true); path != "" || len(asked()) != 3 {
			t.Errorf("build-id %q: %s, asked %q", id, path, asked())
		}
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		answer, want string
		down         bool // not asked again
	}{
		{"error", "500", true},
		{"cut", "unexpected EOF", true},
		{"endless", "too long", false},
		{"stuck", "deadline", true},
		{strings.Repeat("x", 5000), "too long", false},
	} {
		s, asked := server(t, map[string]string{"/buildid/abcd/debuginfo": tt.answer, "/buildid/abcdef/debuginfo": "good"})
		var warned []string
		dir := t.TempDir()
		c := &debuginfod.Client{
			URLs: []string{s.URL}, Folder: dir, MaxFile: 4000, Timeout: 30 * time.Second,
			Warn: func(err error) { warned = append(warned, err.Error()) },
		}
		if tt.answer == "stuck" {
			c.Timeout = 50 * time.Millisecond
		}
		if path := c.Fetch(context.Background(), "abcd", true); path != "" {
			t.Errorf("%.10s: got %s", tt.answer, path)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], tt.want) || !strings.Contains(warned[0], s.URL) {
			t.Errorf("%.10s: warned %q, want %q", tt.answer, warned, tt.want)
		}
		c.Timeout = 30 * time.Second
		good := c.Fetch(context.Background(), "abcdef", true) != ""
		if good == tt.down || len(asked()) != map[bool]int{true: 1, false: 2}[tt.down] {
			t.Errorf("%.10s: then got a good file %v, asked %q", tt.answer, good, asked())
		}
		left, err := filepath.Glob(filepath.Join(dir, "abcd", "*"))
		if hidden, _ := filepath.Glob(filepath.Join(dir, "abcd", ".*")); err != nil || len(left)+len(hidden) > 0 {
			t.Errorf("%.10s: left files %q %q %v", tt.answer, left, hidden, err)
		}
	}
}

func TestNoServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	n := 0
	c := &debuginfod.Client{URLs: []string{s.URL}, Folder: t.TempDir(), Warn: func(error) { n++ }}
	for _, id := range []string{"abcd", "abce", "abcf"} {
		if path := c.Fetch(context.Background(), id, true); path != "" {
			t.Error(path)
		}
	}
	if n != 1 {
		t.Errorf("%d warnings about a server that does not answer", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s2, asked := server(t, nil)
	c = &debuginfod.Client{URLs: []string{s2.URL}, Folder: t.TempDir()}
	if c.Fetch(ctx, "abcd", true); len(asked()) > 0 {
		t.Error("asked after the end")
	}
}

// TestPrune checks that the least recently used files are removed.
func TestPrune(t *testing.T) {
	files := map[string]string{}
	for _, id := range []string{"aaaa", "bbbb", "cccc"} {
		files["/buildid/"+id+"/debuginfo"] = strings.Repeat("x", 1000)
	}
	s, _ := server(t, files)
	dir := t.TempDir()
	c := &debuginfod.Client{URLs: []string{s.URL}, Folder: dir, MaxCache: 2500}
	ctx := context.Background()
	for i, id := range []string{"aaaa", "bbbb"} {
		path := c.Fetch(ctx, id, true)
		old := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	c.Fetch(ctx, "aaaa", true) // used now
	part := filepath.Join(dir, "aaaa", ".part-1")
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(part, long, long); err != nil {
		t.Fatal(err)
	}
	c.Fetch(ctx, "cccc", true)
	for id, want := range map[string]bool{"aaaa/debuginfo": true, "bbbb": false, "cccc/debuginfo": true, "aaaa/.part-1": false} {
		_, err := os.Stat(filepath.Join(dir, id))
		if err != nil && !errors.Is(err, os.ErrNotExist) || (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", id, err, want)
		}
	}
}

func TestParseURLs(t *testing.T) {
	for list, want := range map[string]string{
		"http://a https://b/c/":                       "http://a https://b/c",
		" ima:enforcing https://a:8002 ima:ignore   ": "https://a:8002",
		"": "", "file:///etc": "", "a.b": "", "https://": "", "ima:enforcing": "",
	} {
		got, err := debuginfod.ParseURLs(list)
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
}
