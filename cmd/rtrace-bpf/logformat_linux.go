package main

import (
	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
)

// logFlag selects the form of messages.
type logFlag struct{ format string }

// jsonLog is the form of messages for programs.
const jsonLog = "json"

func (l *logFlag) declare(f *pflag.FlagSet) {
	f.Var(flags.Word(&l.format, "text", "text", jsonLog), "log-format", "print messages on standard error as `FORM`: text, or json, a line of JSON for each: time, level, msg, program, and pid and hint where there are any. The summary is one message, with its lines as text")
}

// apply returns the streams with messages in the selected form. flush prints what is left of
// them at the end.
func (l *logFlag) apply(s cli.Streams) (changed cli.Streams, flush func()) {
	if l.format != jsonLog {
		return s, func() {}
	}
	log := cli.NewLog(s.Err)
	s.Err = log
	return s, log.Flush
}
