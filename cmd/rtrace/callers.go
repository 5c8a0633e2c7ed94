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

// callerFormats are the formats that have a place for callers.
var callerFormats = map[string]bool{"mtrc": true, "jsonl": true}

// callerFlags select which frame of a stack is the caller of a call.
type callerFlags struct {
	policy string // empty: callers stay unchanged
}

func (c *callerFlags) add(f *pflag.FlagSet) {
	f.Var(groups.Word(&c.policy, "", resolve.Policies()...), "callers", "mtrc and jsonl: record where each call with a stack was made, as the innermost frame of `WHAT`: "+
		"program (outside the C and C++ libraries and allocators, if there is one; the default) or innermost (of any file)")
	f.Lookup("callers").NoOptDefVal = resolve.Program.String()
}

// check reports whether the flag fits a format.
func (c *callerFlags) check(format string) error {
	if c.policy != "" && !callerFormats[format] {
		return cli.Usagef("--callers: %s has no place for callers, mtrc and jsonl have", format)
	}
	return nil
}

// reader returns a reader that adds the callers of calls. file is the name of the input,
// empty for standard input.
func (c *callerFlags) reader(ctx context.Context, in *input, file string, o decoder.Options) trace.Reader {
	policy, ok := resolve.ParsePolicy(c.policy)
	if !ok {
		return in
	}
	r := resolve.New(resolve.Options{})
	// sp-rtrace records a mapping late, even at the end of the trace. An address that no
	// mapping covers at the time of its use may thus be in a later mapping.
	if lateMappings(in.Format) {
		observeMappings(ctx, r, file, o)
	}
	return resolve.NewCallers(in, r, policy.Wrappers())
}

// lateMappings reports whether traces of a format may have mappings, or names of functions, after
// calls from there.
func lateMappings(format string) bool {
	return format == "sprtrace" || format == "text" || format == "nettrace"
}

// observeMappings passes all mappings and functions of a file that can be read twice to r.
// The second reading reports errors in the file.
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
