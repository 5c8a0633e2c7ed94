// Package naming names the addresses in a trace while it is recorded: callers in MTRC,
// functions in nettrace, and frames in summaries. It reads the files that the traced
// process sees, also after the process has ended.
package naming
