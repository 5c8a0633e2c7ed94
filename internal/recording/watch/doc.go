// Package watch sums up what a recording sees while it runs, instead of writing a trace. It
// feeds the aggregation engine, and names call sites on demand.
package watch
