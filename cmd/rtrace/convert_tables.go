package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/dataset"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// tablesFormat is the format of traces as tables. Its output is a directory.
const tablesFormat = "parquet"

// tableFlags are the flags of tables.
type tableFlags struct {
	host    string
	service string
	folder  fleetFlags
	flags   *pflag.FlagSet
}

func (t *tableFlags) add(f *pflag.FlagSet) {
	t.flags = f
	f.StringVar(&t.host, "host", "", "parquet: the machine that was traced is `NAME` (default: "+dataset.Unknown+", because traces do not contain it)")
	f.StringVar(&t.service, "service", "", "parquet: the program is a part of the service `NAME` (default: the name of the program in the trace, or "+dataset.Unknown+")")
	t.folder.addFolder(f, "parquet: ")
}

// of returns the host and the service of a trace, as far as flags name them.
func (t *tableFlags) of(file string) (host, service string) {
	host, service = t.folder.place(wholePath(file))
	return cmp.Or(t.host, host), cmp.Or(t.service, service)
}

// unused returns an error if one of the flags was given for another format.
func (t *tableFlags) unused() error {
	for _, name := range []string{"host", "service", "folder-is"} {
		if t.flags.Changed(name) {
			return cli.Usagef("--%s: only the format %s has a place for it", name, tablesFormat)
		}
	}
	return nil
}

func tablesList() cli.List {
	return cli.List{Title: "Formats of tables", Rows: []cli.ListRow{{Name: "parquet (.parquet)", Text: "directory of tables for DuckDB, Spark and ClickHouse; takes several FILEs and directories"}}}
}

// wantsTables reports whether tables are requested, by name or by the suffix of the output.
func (c *convert) wantsTables() bool {
	return c.format == tablesFormat || c.format == "" && strings.HasSuffix(strings.TrimRight(c.output, "/"), "."+tablesFormat)
}

// tables adds the traces that args name to the dataset c.output.
func (c *convert) tables(ctx context.Context, s cli.Streams, args []string) error {
	if err := c.checkTables(); err != nil {
		return err
	}
	if len(args) == 0 || len(args) == 1 && args[0] == "-" {
		return cli.WithHint(cli.Usagef("%s: traces are read twice, so standard input cannot be one", tablesFormat), "name files or directories with traces")
	}
	names, err := tracesOf(args)
	if err != nil {
		return err
	}
	var incomplete error
	for _, name := range names {
		err := c.addToTables(ctx, s, name)
		if !isIncomplete(err) {
			return err
		}
		incomplete = errors.Join(incomplete, err)
	}
	return incomplete
}

// checkTables checks the flags.
func (c *convert) checkTables() error {
	for _, name := range []string{"value", "labels", "resource", "from", "to", "context"} {
		if c.profile.flags.Changed(name) {
			return cli.Usagef("--%s: the tables have all calls; select rows of them by SQL", name)
		}
	}
	if is := c.place.folder.folderIs; is != "" && c.place.flags.Changed(is) {
		return cli.Usagef("--%s and --folder-is %s exclude each other", is, is)
	}
	if c.output == "" || c.output == "-" {
		return cli.WithHint(cli.Usagef("%s is a directory of tables, and -o is missing", tablesFormat), "name it, such as -o traces.parquet")
	}
	if info, err := os.Stat(c.output); err == nil && !info.IsDir() {
		return cli.Usagef("-o %s is a file; tables need a directory", c.output)
	}
	return c.profile.check()
}

// source returns what is known of a trace before its calls are read.
func (c *convert) source(ctx context.Context, name string) (s dataset.Source, err error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return s, cli.FileError("opening", name, err)
	case !info.Mode().IsRegular():
		return s, fmt.Errorf("%s is no regular file: traces are read twice", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return s, cli.FileError("opening", name, err)
	}
	defer file.Close()
	if s.ID, err = dataset.ID(untilDone(ctx, file)); err != nil {
		return s, cli.FileError("reading", name, err)
	}
	s.File, s.NamesOfFiles = filepath.Base(name), c.profile.names.wanted()
	s.Host, s.Service = c.place.of(name)
	t, err := decoder.OpenFile(name, decoder.Options{Strict: c.input.strict, NoSide: c.input.noSide})
	if err != nil {
		return s, cli.WithHint(err, inputHint(name, err))
	}
	_ = s.ReadHead(t) // the second reading reports errors
	return s, t.Close()
}

// addToTables adds a trace.
func (c *convert) addToTables(ctx context.Context, s cli.Streams, name string) (err error) {
	about, err := c.source(ctx, name)
	if err != nil {
		return err
	}
	input := c.input
	input.windows = true
	in, err := input.open(ctx, s, "convert", []string{name})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	resolver, err := c.profile.names.open(ctx, warner(s.Err, "convert"))
	if err != nil {
		return err
	}
	defer func() { _ = resolver.Save() }() // without a cache, the next run is only slower
	w, err := dataset.New(c.output, about, newTableNamer(&c.profile.names, resolver))
	if err != nil {
		return err
	}
	err = in.outcome(addAll(w, in))
	if !isIncomplete(err) {
		return errors.Join(err, w.Discard())
	}
	if e := w.Finish(err == nil); e != nil {
		return e
	}
	return err
}

// addAll adds the records of a trace.
func addAll(w *dataset.Writer, src trace.Reader) error {
	calls := filter.NewJoinMoves(src)
	var r trace.Record
	for {
		if err := calls.ReadRecord(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := w.Add(&r); err != nil {
			return err
		}
	}
}
