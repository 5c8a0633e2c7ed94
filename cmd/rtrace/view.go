package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// viewFlags are the flags of commands that read one process of a trace and write one file
// about it.
type viewFlags struct {
	output, format string
	width          int
	process        processFlags
	blocks         blockFlags
}

// The least and the greatest width of a picture in pixels.
const (
	leastWidth = 480
	mostWidth  = 1 << 14
)

// addOutput adds the flags of the file. formats describes its formats in words; words are
// their names.
func (v *viewFlags) addOutput(f *pflag.FlagSet, formats string, words ...string) {
	f.StringVarP(&v.output, "output", "o", "", "write to the file `OUT`; - is standard output (the default)")
	f.VarP(groups.Word(&v.format, "", words...), "format", "f", "write `FORMAT`: "+formats)
	f.Var(groups.Number(&v.width, 1200, leastWidth, mostWidth), "width", "width of an SVG picture in `PIXELS`")
}

// addWhat adds the flags that select the process and its names.
func (v *viewFlags) addWhat(f *pflag.FlagSet) {
	v.process.add(f)
	v.blocks.source.addSource(f)
}

// suffix returns the suffix of the output's name, in lower case and without the dot.
func (v *viewFlags) suffix() string {
	return strings.TrimPrefix(strings.ToLower(filepath.Ext(v.output)), ".")
}

// run passes the records of the process to add and then calls write with the name of the
// process.
func (v *viewFlags) run(ctx context.Context, s cli.Streams, command string, args []string,
	add func(*trace.Record), write func(w io.Writer, name string) error,
) (err error) {
	if suffix := v.suffix(); slices.Contains([]string{"png", "jpg", "jpeg", "gif", "webp", "pdf", "eps", "ps"}, suffix) {
		return cli.Usagef("-o %s: pictures are SVG, not %s; did you mean -o %s.svg?", v.output, strings.ToUpper(suffix), strings.TrimSuffix(v.output, filepath.Ext(v.output)))
	}
	file, err := oneFile(s, args)
	if err != nil {
		return err
	}
	out, err := create(s, v.output, file, map[string]content{"html": htmlContent, "svg": svgContent}[v.format])
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	var src *processReader
	read := func(in *input) (err error) {
		if src, err = v.process.reader(in); err != nil {
			return err
		}
		return each(src, add)
	}
	return v.blocks.in.examine(ctx, s, command, args, read, func(in *input) error {
		if err := src.check(warner(s.Err, command)); err != nil {
			return err
		}
		w := bufio.NewWriter(out)
		return errors.Join(write(w, src.name(in.name)), w.Flush())
	})
}

// each calls add for every record up to the end.
func each(r trace.Reader, add func(*trace.Record)) error {
	var rec trace.Record
	for {
		if err := r.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		add(&rec)
	}
}
