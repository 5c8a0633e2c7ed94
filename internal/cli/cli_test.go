package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

func TestReport(t *testing.T) {
	plain := errors.New("it broke")
	for _, tt := range []struct {
		name string
		err  error
		code cli.ExitCode
		want string
	}{
		{"nothing", nil, cli.OK, ""},
		{"failure", plain, cli.Failed, "prog: it broke\n"},
		{"wrapped", fmt.Errorf("reading x: %w", plain), cli.Failed, "prog: reading x: it broke\n"},
		{"hint", cli.WithHint(plain, "mend it"), cli.Failed, "prog: it broke\nhint: mend it\n"},
		{"hint inside", fmt.Errorf("a: %w", cli.WithHint(plain, "mend it")), cli.Failed, "prog: a: it broke\nhint: mend it\n"},
		{"no hint for nothing", cli.WithHint(nil, "mend it"), cli.OK, ""},
		{"usage", cli.Usagef("no %s", "file"), cli.Usage, "prog: no file\nhint: run 'prog --help'\n"},
		{"usage with hint", cli.WithHint(cli.Usagef("no file"), "name one"), cli.Usage, "prog: no file\nhint: name one\n"},
		{"incomplete", cli.Incompletef("cut: %w", plain), cli.Incomplete, "prog: note: cut: it broke\n"},
		{"joined", errors.Join(cli.Incompletef("cut"), nil), cli.Incomplete, "prog: note: cut\n"},
		{"usage counts more", errors.Join(cli.Incompletef("cut"), cli.Usagef("bad")), cli.Usage, "prog: cut\nbad\nhint: run 'prog --help'\n"},
		{"already reported", fmt.Errorf("reading: %w", cli.ErrReported), cli.Failed, ""},
		{"reader went away", fmt.Errorf("writing: %w", syscall.EPIPE), cli.Failed, ""},
		{"interrupt", fmt.Errorf("reading: %w", context.Canceled), cli.Failed, "prog: interrupted\n"},
	} {
		var out bytes.Buffer
		if code := cli.Report(&out, "prog", tt.err); code != tt.code || out.String() != tt.want {
			t.Errorf("%s: exit code %d, %q; want %d, %q", tt.name, code, out.String(), tt.code, tt.want)
		}
	}
	if err := cli.Incompletef("cut: %w", plain); !errors.Is(err, plain) || !errors.Is(err, cli.ErrIncomplete) {
		t.Errorf("%v does not wrap", err)
	}
	if err := (&cli.UsageError{Err: plain}); !errors.Is(err, plain) {
		t.Errorf("%v does not wrap", err)
	}
}

func TestFileError(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "x"))
	err = cli.FileError("opening", "x", err)
	if got := err.Error(); got != "opening x: no such file or directory" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q", got)
	}
	err = cli.FileError("moving", "x", os.Rename(filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")))
	if got := err.Error(); got != "moving x: no such file or directory" {
		t.Errorf("%q", got)
	}
	if err := cli.FileError("opening", "x", nil); err != nil {
		t.Error(err)
	}
}

func page() *cli.Page {
	return &cli.Page{
		Name: "prog sub", Summary: "do it", Synopsis: []string{"[FILE]", ""},
		About:    strings.Repeat("many words ", 12) + "\n\nSecond.",
		Lists:    []cli.List{{Title: "Things", Rows: []cli.ListRow{{"a", "first"}, {"long", "second"}}}},
		Flags:    []cli.FlagGroup{{Title: "Output", Usage: "  -o, --output FILE   write it\n"}},
		Examples: []cli.Example{{Does: "do it now", Command: "prog sub now"}},
		Exit:     []cli.ExitRow{{cli.OK, "done"}, {cli.Failed, "not"}},
	}
}

func TestPage(t *testing.T) {
	var text, markdown bytes.Buffer
	if err := errors.Join(page().WriteText(&text), page().WriteMarkdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	wantText := `prog sub - do it

Usage:
  prog sub [FILE]
  prog sub

many words many words many words many words many words many words many words many words many words
many words many words many words

Second.

Things:
  a     first
  long  second

Output:
  -o, --output FILE   write it

Examples:
  do it now:
      prog sub now

Exit status:
  0  done
  1  not
`
	if diff := cmp.Diff(wantText, text.String()); diff != "" {
		t.Errorf("text (-want +got)\n%s", diff)
	}
	_, rest, _ := strings.Cut(markdown.String(), "-->\n")
	wantMarkdown := "# prog sub\n\nDo it.\n\n```\nprog sub [FILE]\nprog sub\n```\n\n" +
		"many words many words many words many words many words many words many words many words many words\nmany words many words many words\n\nSecond.\n\n" +
		"## Things\n\n* `a`: first\n* `long`: second\n\n## Output\n\n```\n  -o, --output FILE   write it\n```\n\n" +
		"## Examples\n\nDo it now:\n\n```\nprog sub now\n```\n\n## Exit status\n\n* 0: done\n* 1: not\n"
	if diff := cmp.Diff(wantMarkdown, rest); diff != "" {
		t.Errorf("markdown (-want +got)\n%s", diff)
	}
	p := page()
	p.Exit = nil
	text.Reset()
	if err := p.WriteText(&text); err != nil || !strings.Contains(text.String(), "  3  done, but") {
		t.Errorf("without exit rows: %v\n%s", err, text.String())
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}
	if got := cli.Version(info); got != "v1.2.3 go1.26.0" {
		t.Errorf("%q", got)
	}
	info.Main.Version = ""
	info.Settings = []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
	}
	if got := cli.Version(info); got != "(devel) revision 0123456789ab dirty go1.26.0 linux/arm64" {
		t.Errorf("%q", got)
	}
	info.Settings[1].Value = "false"
	if got := cli.Version(info); strings.Contains(got, "dirty") {
		t.Errorf("%q", got)
	}
	if got := cli.Version(nil); got != "(unknown)" {
		t.Errorf("%q", got)
	}
	if got := cli.BuildVersion(); !strings.Contains(got, "go1.") {
		t.Errorf("%q", got)
	}
}

func TestIsTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	s := cli.FileStreams(r, w, null)
	if s.InTerminal || s.OutTerminal || s.ErrTerminal {
		t.Errorf("%+v", s)
	}
	closed, _ := os.Open(os.DevNull)
	_ = closed.Close()
	if cli.IsTerminal(closed) {
		t.Error("a closed file is a terminal")
	}
	if s.Out != io.Writer(w) || s.In != io.Reader(r) {
		t.Error("the streams are others")
	}
}
