package renaming_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rtrace-bpf/cmd/internal/renaming"
	"rtrace-bpf/decoder"
	"rtrace-bpf/trace"
)

const corpus = "../../../testdata/corpus/sp-rtrace/"

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// folder creates files with the given contents.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents lists the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()] = string(read(t, filepath.Join(dir, e.Name())))
	}
	return all
}

// records reads a trace and returns attachments separately.
func records(t *testing.T, path string) (all []*trace.Record, attachments []string) {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{NoSide: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for {
		var r trace.Record
		if err := in.ReadRecord(&r); errors.Is(err, io.EOF) {
			return all, attachments
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Kind == trace.KindAttachment {
			attachments = append(attachments, r.Attachment.Path)
			continue
		}
		all = append(all, r.Clone())
	}
}

// A real trace with attachments, as text and in our format: only the names of
// the attachments change.
func TestAttachments(t *testing.T) {
	binary := string(read(t, corpus+"pagemap.rtrace"))
	text := string(read(t, corpus+"out/pagemap/plain.txt"))
	json := `{"format":"rtrace-jsonl","version":1}` + "\n" + `{"kind":"process","pid":27506,"name":"/bin/demo"}` + "\n" +
		`{"kind":"attachment","name":"maps","path":"27506-pagemap-maps-0"}` + "\n" + `{"kind":"comment","text":"attachment 27506-pagemap-maps-0"}`
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{g, z} {
		if _, err := io.WriteString(w, binary); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := folder(t, map[string]string{
		"27506-0.rtrace": binary, "27506-0.rtrace.txt": text, "rtrace-raw-27506-0.jsonl": json,
		"27506-1.rtrace.gz": gz.String(), "27506-2.rtrace.zst": zst.String(),
		"27506-pagemap-maps-0": "m", "27506-pagemap-pageflags-0": "p", "rtrace-raw-27506-0.jsonl.side": "side",
		"27506-pagemap-maps-9": "of no trace", "127506-0.rtrace": "of another", "27506-0.dot": "made of it",
	})
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "27506-0.rtrace"), old, old); err != nil {
		t.Fatal(err)
	}
	plan, err := renaming.NewPlan(dir, "27506", "a-rather-long-name")
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(false); err != nil {
		t.Fatal(err)
	}
	got := contents(t, dir)
	names := make([]string, 0, len(got))
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	const n = "a-rather-long-name"
	want := []string{
		"127506-0.rtrace", "27506-0.dot", "27506-pagemap-maps-9",
		n + "-0.rtrace", n + "-0.rtrace.txt", n + "-1.rtrace.gz", n + "-2.rtrace.zst", n + "-pagemap-maps-0", n + "-pagemap-pageflags-0",
		"rtrace-raw-" + n + "-0.jsonl", "rtrace-raw-" + n + "-0.jsonl.side",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got[n+"-0.rtrace.txt"] != strings.ReplaceAll(text, " : 27506-pagemap", " : "+n+"-pagemap") {
		t.Errorf("text:\n%s", got[n+"-0.rtrace.txt"])
	}
	if got["rtrace-raw-"+n+"-0.jsonl"] != strings.Replace(json, `"path":"27506-pagemap`, `"path":"`+n+"-pagemap", 1) {
		t.Errorf("jsonl:\n%s", got["rtrace-raw-"+n+"-0.jsonl"])
	}
	wantRecords, _ := records(t, corpus+"pagemap.rtrace")
	for _, name := range []string{"-0.rtrace", "-1.rtrace.gz", "-2.rtrace.zst"} {
		gotRecords, attachments := records(t, filepath.Join(dir, n+name))
		if d := cmp.Diff(wantRecords, gotRecords); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
		if d := cmp.Diff([]string{n + "-pagemap-maps-0", n + "-pagemap-pageflags-0"}, attachments); d != "" {
			t.Errorf("%s: attachments %s", name, d)
		}
	}
	info, err := os.Stat(filepath.Join(dir, n+"-0.rtrace"))
	if err != nil || !info.ModTime().Equal(old) || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	// Renaming back restores every byte.
	plan, err = renaming.NewPlan(dir, n, "27506")
	if err == nil {
		err = plan.Apply(false)
	}
	if back := contents(t, dir); err != nil || back["27506-0.rtrace"] != binary || back["27506-0.rtrace.txt"] != text {
		t.Errorf("%v: not as before", err)
	}
}

// Nothing is overwritten, and after a failure everything is unchanged.
func TestRefused(t *testing.T) {
	binary := string(read(t, corpus+"pagemap.rtrace"))
	files := map[string]string{"27506-0.rtrace": binary, "27506-pagemap-maps-0": "m", "demo-0.rtrace": "mine"}
	dir := folder(t, files)
	plan, err := renaming.NewPlan(dir, "27506", "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff(files, contents(t, dir)); d != "" {
		t.Errorf("after a refusal (-want +got)\n%s", d)
	}
	if err := plan.Apply(true); err != nil {
		t.Error(err)
	}
	if got := contents(t, dir); len(got) != 2 || got["demo-pagemap-maps-0"] != "m" || got["demo-0.rtrace"] == "mine" {
		t.Errorf("with force: %d files", len(got))
	}

	// A file that is removed after planning makes Apply fail halfway.
	dir = folder(t, files)
	if err := os.Remove(filepath.Join(dir, "demo-0.rtrace")); err != nil {
		t.Fatal(err)
	}
	if plan, err = renaming.NewPlan(dir, "27506", "demo"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "27506-pagemap-maps-0")); err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff(map[string]string{"27506-0.rtrace": binary}, contents(t, dir)); d != "" {
		t.Errorf("after a failure (-want +got)\n%s", d)
	}

	// Even with force, Apply does not overwrite one of the files to rename.
	dir = folder(t, map[string]string{"12-0.rtrace": "a", "12-0-0.rtrace": "b"})
	if plan, err = renaming.NewPlan(dir, "12", "12-0"); err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(true); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}

// The name may be taken from the trace.
func TestProcessName(t *testing.T) {
	for process, want := range map[string]string{"/usr/bin/demo": "demo", "./a b/-x\x1b": "_x_", "/": "_"} {
		text := "version=2.0, process=" + process + ", pid=7, \n1. malloc(1) = 0x1\n\n"
		plan, err := renaming.NewPlan(folder(t, map[string]string{"7.rtrace.txt": text, "7.rtrace.png": "\x89PNG"}), "7", "")
		if err != nil || len(plan.Files) != 2 || plan.Files[1].New != want+".rtrace.txt" || !renaming.IsName(want) {
			t.Errorf("%q: %+v, %v", process, plan, err)
		}
	}
	if _, err := renaming.NewPlan(folder(t, map[string]string{"7.rtrace": ""}), "7", ""); !errors.Is(err, renaming.ErrNoName) {
		t.Error(err)
	}
	if _, err := renaming.NewPlan(folder(t, map[string]string{"8.rtrace": "", "7.txt": "", "77.rtrace": ""}), "7", "x"); !errors.Is(err, renaming.ErrNoFiles) {
		t.Error(err)
	}
	if _, err := renaming.NewPlan(filepath.Join(t.TempDir(), "nonesuch"), "7", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for name, want := range map[string]bool{"a": true, "a.b-c+d_1": true, "": false, "-a": false, ".a": false, "a/b": false, "a b": false, "\x1b": false, strings.Repeat("a", 129): false} {
		if renaming.IsName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
