package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// callerFormats are those that have a place for callers.
var callerFormats = map[string]bool{"mtrc": true, "jsonl": true}

// callerFlags say which frame of a stack is the caller of a call.
type callerFlags struct {
	policy string // empty: callers stay as they are
}

func (c *callerFlags) add(f *pflag.FlagSet) {
	f.Var(groups.Word(&c.policy, "", resolve.Policies()...), "callers", "mtrc and jsonl: record where each call with a stack was made, as the innermost frame of `WHAT`: "+
		"program (outside the C and C++ libraries and allocators, if there is one; the default) or innermost (of any file)")
	f.Lookup("callers").NoOptDefVal = resolve.Program.String()
}

// check says what is wrong with the flag for a format.
func (c *callerFlags) check(format string) error {
	if c.policy != "" && !callerFormats[format] {
		return cli.Usagef("--callers: %s has no place for callers, mtrc and jsonl have", format)
	}
	return nil
}

// reader returns a reader that says where calls were made from. file is the name
// of the input, empty for standard input.
func (c *callerFlags) reader(ctx context.Context, in *input, file string, o decoder.Options) trace.Reader {
	policy, ok := resolve.ParsePolicy(c.policy)
	if !ok {
		return in
	}
	r := resolve.New(resolve.Options{})
	// sp-rtrace finds out late about a mapping, or at the end of the trace: so
	// the addresses that no mapping covers when they are used may lie in one of
	// the later ones.
	if tellsLate(in.Format) {
		observeMappings(ctx, r, file, o)
	}
	return resolve.NewCallers(in, r, policy)
}

// tellsLate says that traces of a format have mappings, or names of functions,
// behind calls that come from there.
func tellsLate(format string) bool {
	return format == "sprtrace" || format == "text" || format == "nettrace"
}

// observeMappings tells r of all mappings and functions of a file that can be read twice. What
// is wrong with the file is told when it is read again.
func observeMappings(ctx context.Context, r *resolve.Resolver, file string, o decoder.Options) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return
	}
	t, err := decoder.OpenFile(file, o)
	if err != nil {
		return
	}
	defer func() { _ = t.Close() }() // only read
	var rec trace.Record
	for src := (&untilDoneReader{ctx: ctx, r: t}); src.ReadRecord(&rec) == nil; {
		if rec.Kind == trace.KindMapping || rec.Kind == trace.KindFunction {
			r.Observe(&rec)
		}
	}
}
