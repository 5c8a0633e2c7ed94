// Package renaming renames the recorded files of a process by replacing the
// process ID with a word. It also renames the attachments of the traces and
// changes their names in the traces.
package renaming

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rtrace-bpf/decoder"
	"rtrace-bpf/trace"
)

// ErrNoFiles reports that a folder has no traces of a process.
var ErrNoFiles = errors.New("no traces")

// ErrNoName reports that no trace contains the name of its process.
var ErrNoName = errors.New("no trace contains the name of the process")

// ours is the prefix of the file names that rtrace-bpf chooses itself.
const ours = "rtrace-raw-"

// plain matches valid names, which need no escaping in any format.
var plain = regexp.MustCompile(`^[A-Za-z0-9_+][A-Za-z0-9._+-]*$`)

// IsName reports whether a text may replace a process ID.
func IsName(name string) bool { return plain.MatchString(name) && len(name) <= 128 }

// File is a file to rename.
type File struct {
	Old, New string // in the folder
	// Rewrite reports that the file is a trace with attachments to rename.
	Rewrite bool

	format      string
	compression []string
}

// Plan is the set of files that Apply renames.
type Plan struct {
	Files []File
	dir   string
	paths map[string]string // of attachments, old to new
}

// NewPlan finds the files of the process with the given ID in a folder: those
// of sp-rtrace, PID.rtrace… and PID-….rtrace…, those of rtrace-bpf,
// rtrace-raw-PID-…, and their attachments if their names begin with the ID as
// well. If name is empty, NewPlan uses the name of the process from a trace.
func NewPlan(dir, pid, name string) (*Plan, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &Plan{dir: dir, paths: make(map[string]string)}
	there := make(map[string]bool) // regular files
	named := make(map[string]bool) // attachments of traces
	for _, e := range entries {
		there[e.Name()] = e.Type().IsRegular()
	}
	attachments := make(map[string][]string) // by trace
	for _, e := range entries {
		if !there[e.Name()] || !recorded(e.Name(), pid) {
			continue
		}
		f := File{Old: e.Name()}
		paths, process, err := f.look(dir)
		if err != nil {
			return nil, err
		}
		if name == "" && process != "" {
			name = wordOf(process)
		}
		for _, path := range paths {
			if there[path] && plain.MatchString(path) && renamed(path, pid, "x") != "" {
				attachments[f.Old] = append(attachments[f.Old], path)
				named[path] = true
			}
		}
		p.Files = append(p.Files, f)
	}
	if len(p.Files) == 0 {
		return nil, ErrNoFiles
	}
	if name == "" {
		return nil, ErrNoName
	}
	for path := range named {
		p.paths[path] = renamed(path, pid, name)
		if !slices.ContainsFunc(p.Files, func(f File) bool { return f.Old == path }) {
			p.Files = append(p.Files, File{Old: path})
		}
	}
	for i := range p.Files {
		f := &p.Files[i]
		f.New = renamed(f.Old, pid, name)
		f.Rewrite = len(attachments[f.Old]) > 0
	}
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Old, b.Old) })
	return p, nil
}

// recorded reports whether a file name is that of a trace of a process, or of a
// file derived from one.
func recorded(name, pid string) bool {
	return renamed(name, pid, "x") != "" && (strings.HasPrefix(name, ours) || strings.Contains(name, ".rtrace"))
}

// renamed returns a file name with another word instead of the process ID, or
// an empty string if the name does not begin with the ID.
func renamed(name, pid, word string) string {
	prefix, rest := "", name
	if r, ok := strings.CutPrefix(name, ours); ok {
		prefix, rest = ours, r
	}
	rest, ok := strings.CutPrefix(rest, pid)
	if !ok || rest == "" || rest[0] != '-' && rest[0] != '.' {
		return ""
	}
	return prefix + word + rest
}

// wordOf derives a word from a process's name.
func wordOf(process string) string {
	word := []byte(filepath.Base(process))
	for i, c := range word {
		if !plain.Match([]byte{'x', c}) || i == 0 && !plain.Match([]byte{c}) {
			word[i] = '_'
		}
	}
	return string(word[:min(len(word), 128)])
}

// look reads a file, if it is a trace, and returns the paths of its attachments
// and the name of its process.
func (f *File) look(dir string) (paths []string, process string, err error) {
	file, err := os.Open(filepath.Join(dir, f.Old))
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	in, err := decoder.Open(file, decoder.Options{NoSide: true})
	if errors.Is(err, decoder.ErrUnknown) || errors.Is(err, trace.ErrTruncated) {
		return nil, "", nil // derived from a trace, or empty
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", f.Old, err)
	}
	defer func() { _ = in.Close() }() // only read
	f.format, f.compression = in.Format, in.Compression
	var r trace.Record
	for {
		switch err := in.ReadRecord(&r); {
		case err != nil:
			if _, syntax := errors.AsType[*trace.SyntaxError](err); syntax || errors.Is(err, io.EOF) {
				return paths, process, nil // the part before the error is a trace
			}
			return nil, "", fmt.Errorf("reading %s: %w", f.Old, err)
		case r.Kind == trace.KindAttachment:
			paths = append(paths, r.Attachment.Path)
		case r.Kind == trace.KindProcess && process == "":
			process = r.Process.Program()
		}
	}
}

// Check returns an error if a file would be overwritten, or with force, if one
// of the files to rename would be.
func (p *Plan) Check(force bool) error {
	old := make(map[string]bool)
	for i := range p.Files {
		old[p.Files[i].Old] = true
	}
	for i := range p.Files {
		path := filepath.Join(p.dir, p.Files[i].New)
		_, err := os.Lstat(path)
		if err == nil && (!force || old[p.Files[i].New]) {
			err = &fs.PathError{Op: "rename", Path: path, Err: fs.ErrExist}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
