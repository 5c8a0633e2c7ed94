package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/internal/atomicfile"
	"rtrace-bpf/internal/cli"
)

// output is where a command writes its result: standard output, or a file that appears when
// it is complete.
type output struct {
	io.Writer
	file *atomicfile.File // nil for standard output
}

// content describes the contents of an output.
type content struct {
	what   string // what it is, if it is not for a terminal; otherwise empty
	suffix string // suffix of its file
}

// The kinds of contents that commands write.
var (
	textContent   = content{}
	binaryContent = func(suffix string) content { return content{"binary", suffix} }
	htmlContent   = content{"a page for a browser", ".html"}
	svgContent    = content{"a picture", ".svg"}
	dotContent    = content{"a graph for dot", ".dot"}
)

// terminalError means that an output would fill a terminal with data that is not for people.
type terminalError struct{ content content }

func (e *terminalError) Error() string {
	return "standard output is a terminal, and the output is " + e.content.what
}

// explain returns the error with the command to use, for a subcommand and its arguments.
func (e *terminalError) explain(command string, args []string) error {
	words := append([]string{"rtrace", command, "-o", command + e.content.suffix}, args...)
	return cli.WithHint(&cli.UsageError{Err: e}, "write it to a file: "+cli.CommandLine(words...))
}

// folderError means that the name of a single output file is a directory.
type folderError struct {
	name    string
	content content
}

func (e *folderError) Error() string {
	return e.name + " is a directory, but the output is a single file"
}

// explain returns the error with the name to use, for a subcommand.
func (e *folderError) explain(command string, _ []string) error {
	file := strings.TrimRight(e.name, "/") + "/" + command + cmp.Or(e.content.suffix, ".txt")
	return cli.WithHint(&cli.UsageError{Err: e}, "name the file, such as "+cli.Word(file))
}

// explained is an error that can add a hint from the command line.
type explained interface {
	error
	explain(command string, args []string) error
}

// create opens the output of -o; empty and "-" are standard output. input is the file that
// is read, if it is one; it is never overwritten. Contents that are not for people go to a
// terminal only for "-"; otherwise the error is a *terminalError.
func create(s cli.Streams, name, input string, holds content) (*output, error) {
	if name == "" || name == "-" {
		if holds.what != "" && name == "" && s.OutTerminal {
			return nil, &terminalError{holds}
		}
		return &output{Writer: s.Out}, nil
	}
	if info, err := os.Stat(name); strings.HasSuffix(name, "/") || err == nil && info.IsDir() {
		return nil, &folderError{name, holds}
	}
	if sameFile(name, input) {
		return nil, cli.WithHint(cli.Usagef("%s is both input and output", name), "write to another file")
	}
	f, err := atomicfile.Create(name)
	if err != nil {
		return nil, cli.WithHint(cli.FileError("creating", name, err), missingFolder(name, err))
	}
	return &output{Writer: f, file: f}, nil
}

// missingFolder returns what to do if the folder of a file is missing.
func missingFolder(name string, err error) string {
	dir := filepath.Dir(name)
	if _, statErr := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || !errors.Is(statErr, fs.ErrNotExist) {
		return ""
	}
	return "the directory is missing; make it first: " + cli.CommandLine("mkdir", "-p", dir)
}

func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && ia.Mode().IsRegular() && os.SameFile(ia, ib)
}

// regular reports whether the output is a regular file.
func (o *output) regular() bool { return o.file != nil && o.file.Regular() }

// finish keeps the output if err leaves one worth keeping, and otherwise discards it. It
// returns err, or the last failure.
func (o *output) finish(err error) error {
	if o.file == nil {
		return err
	}
	if !isIncomplete(err) {
		return errors.Join(err, o.file.Discard())
	}
	if e := o.file.Commit(); e != nil {
		return e
	}
	return err
}

// writeJSON prints v as one indented JSON value.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
