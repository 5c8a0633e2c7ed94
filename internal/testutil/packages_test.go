package testutil

import (
	"bytes"
	"cmp"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// module is the path of this module; imports of its packages begin with it.
const module = "rtrace-bpf/"

// wing is a part of the module: the packages in and below some folders.
type wing struct {
	name    string
	what    string // for the page
	folders []string
}

// wings lists all wings. A package imports packages of its own wing and of later ones.
var wings = []wing{
	{"Test helpers", "Only tests import them.", []string{"internal/testutil"}},
	{"Virtual machines", "They run tests under other kernels.", []string{"vmtest"}},
	{"Release", "They make the files of a release.", []string{"release"}},
	{"Programs", "The commands, and what only commands need.", []string{"cmd"}},
	{"Recording", "From processes to traces that are complete. Linux only.", []string{"internal/recording"}},
	{"Tracer", "Probes, rings, order, loss: from a process to records. Linux only.", []string{"tracer"}},
	{"Survey", "From a process to the document about its memory. Linux only.", []string{"internal/survey"}},
	{"Analysis and report", "From records to figures, tables, pictures and pages.", []string{
		"internal/analysis", "internal/dataset", "internal/explain", "internal/filter", "internal/mptrace", "internal/replay", "internal/report", "internal/topview",
	}},
	{"Linux", "What the kernel and a process report. Linux only.", []string{"internal/linux"}},
	{"Symbols and unwinding", "From addresses to functions, lines and callers.", []string{
		"internal/debuginfod", "internal/symbol", "internal/unwind", "internal/xz",
	}},
	{"Formats", "From bytes to records and back, each format in a package.", []string{
		"decoder", "encoder", "internal/binio", "internal/dumptext", "internal/jsonrecord", "internal/jsontext",
		"internal/sidefile", "internal/spool", "internal/window", "internal/wire",
	}},
	{"Outputs", "Files, terminals, help pages.", []string{
		"internal/atomicfile", "internal/cli", "internal/outfile", "internal/printable", "internal/safefile",
	}},
	{"Vocabulary", "What all others talk about: records, live blocks, frames.", []string{"internal/frametext", "internal/heap", "internal/live", "internal/wrapper", "trace"}},
}

// wingOf returns the number of the wing that a package is in, or -1.
func wingOf(pkg string) int {
	return slices.IndexFunc(wings, func(w wing) bool {
		return slices.ContainsFunc(w.folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
	})
}

// pkg is a package of the module as its files without tests have it.
type pkg struct {
	path     string
	synopsis string
	imports  map[string]bool // packages of the module
}

// packages reads the packages below root, in the order of their paths. Files for every
// system count.
func packages(t *testing.T, root string) []*pkg {
	t.Helper()
	all := map[string]*pkg{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != root && (name == "testdata" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil || folder == "." { // go:generate stands there
			return err
		}
		folder = filepath.ToSlash(folder)
		p := all[folder]
		if p == nil {
			p = &pkg{path: folder, imports: map[string]bool{}}
			all[folder] = p
		}
		if p.synopsis == "" {
			p.synopsis = new(doc.Package).Synopsis(f.Doc.Text())
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(name, module); ok {
				p.imports[own] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *pkg) int { return cmp.Compare(a.path, b.path) })
}

// TestWings: every package is in a wing, and imports between wings go one way.
func TestWings(t *testing.T) {
	all := packages(t, Root(t))
	if len(all) < 100 {
		t.Fatalf("only %d packages were found", len(all))
	}
	for _, p := range all {
		from := wingOf(p.path)
		if from < 0 {
			t.Errorf("%s is in no wing; add its folder to one in packages_test.go", p.path)
			continue
		}
		for _, i := range slices.Sorted(maps.Keys(p.imports)) {
			if to := wingOf(i); to >= 0 && to < from {
				t.Errorf("%s (%s) imports %s (%s): imports go from a wing to a later one", p.path, wings[from].name, i, wings[to].name)
			}
		}
	}
	for _, w := range wings {
		for _, f := range w.folders {
			if !slices.ContainsFunc(all, func(p *pkg) bool { return p.path == f || strings.HasPrefix(p.path, f+"/") }) {
				t.Errorf("%s: there is no package in %s", w.name, f)
			}
		}
	}
}

// The page is made from the imports: `make docs` refreshes it.
func TestPackagePage(t *testing.T) {
	root := Root(t)
	file := filepath.Join(root, "docs", "design", "packages.md")
	want := packagePage(packages(t, root))
	if updating() {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make docs makes it", err)
	}
	if d := gocmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is stale; make docs refreshes it (-want +got)\n%s", file, d)
	}
}

// packagePage returns the page about the packages, as Markdown.
func packagePage(all []*pkg) []byte {
	var b bytes.Buffer
	b.WriteString("# Packages\n\n" +
		"`make docs` writes this page from the imports of all files but tests; a test compares it with them.\n\n" +
		"The packages form wings. A package imports packages of its own wing and of wings below it, never of one above; another test checks that. " +
		"A number at an arrow counts the imports from one wing to the other. Arrows to the vocabulary are left out: every wing that handles traces has one.\n\n")
	diagram(&b, all)
	for n, w := range wings {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| package | what it is | imports |\n|---|---|---|\n", w.name, w.what)
		for _, p := range all {
			if wingOf(p.path) == n {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.path, cell(p), imported(p))
			}
		}
	}
	return b.Bytes()
}

// diagram writes the wings and the imports between them as a Mermaid flowchart.
func diagram(b *bytes.Buffer, all []*pkg) {
	packages := make([]int, len(wings))
	arrows := map[[2]int]int{}
	for _, p := range all {
		from := wingOf(p.path)
		if from < 0 {
			continue
		}
		packages[from]++
		for i := range p.imports {
			if to := wingOf(i); to >= 0 && to != from {
				arrows[[2]int{from, to}]++
			}
		}
	}
	b.WriteString("```mermaid\nflowchart TD\n")
	for n, w := range wings {
		count := fmt.Sprintf("%d packages", packages[n])
		if packages[n] == 1 {
			count = "1 package"
		}
		fmt.Fprintf(b, "    w%d[\"%s<br/>%s\"]\n", n, w.name, count)
	}
	vocabulary := len(wings) - 1
	for from := range wings {
		for to := range vocabulary {
			if n := arrows[[2]int{from, to}]; n > 0 {
				fmt.Fprintf(b, "    w%d -->|%d| w%d\n", from, n, to)
			}
		}
	}
	b.WriteString("```\n")
}

// cell returns what a package is, from its documentation, without its name.
func cell(p *pkg) string {
	text := p.synopsis
	for _, prefix := range []string{"Package ", "Command "} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			_, text, _ = strings.Cut(rest, " ")
		}
	}
	return strings.ReplaceAll(strings.TrimSuffix(text, "."), "|", `\|`)
}

// imported lists what a package imports. Several from one folder, and that folder, are
// one entry.
func imported(p *pkg) string {
	folders := map[string][]string{}
	for _, i := range slices.Sorted(maps.Keys(p.imports)) {
		folder := path.Dir(i)
		if folder == "." || folder == "internal" {
			folder = i
		}
		folders[folder] = append(folders[folder], strings.TrimPrefix(strings.TrimPrefix(i, folder), "/"))
	}
	var out []string
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		names := folders[folder]
		short := strings.TrimPrefix(folder, "internal/")
		if names[0] == "" {
			out = append(out, short)
			names = names[1:]
		}
		switch len(names) {
		case 0:
		case 1:
			out = append(out, short+"/"+names[0])
		default:
			out = append(out, short+"/{"+strings.Join(names, ", ")+"}")
		}
	}
	return strings.Join(out, ", ")
}
