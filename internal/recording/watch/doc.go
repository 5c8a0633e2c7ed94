// Package watch sums up what a recording sees while it runs, for live views and snapshots.
// It feeds the aggregation engine, and names call sites on demand.
package watch
