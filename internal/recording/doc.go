// Package recording records processes: it attaches a tracer to each of them, writes its
// records through a chain of writers to a trace, and completes the trace at its end.
//
// A [Recording] is divided into windows: times in which tracing is on. In each window, each
// process has a session of its own, and a trace.
//
// The package has no flags and prints no texts about them. The command prints what a
// [Reporter] receives, what went wrong, and what is missing in the [Result].
package recording
