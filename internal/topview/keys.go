package topview

import "slices"

// By is what the calls of a row have in common.
type By string

// The ways to group calls.
const (
	BySite     By = "site" // the whole stack
	ByFunction By = "function"
	ByFile     By = "file"
	ByLibrary  By = "library"
	ByThread   By = "thread"
	BySize     By = "size"
)

// Groupings returns all ways to group calls.
func Groupings() []string {
	return []string{string(BySite), string(ByFunction), string(ByFile), string(ByLibrary), string(ByThread), string(BySize)}
}

// Order is the figure by which rows are sorted, the largest first.
type Order string

// The orders of rows.
const (
	OrderLive   Order = "live"   // live bytes
	OrderGrowth Order = "growth" // change of live bytes per second
	OrderRate   Order = "rate"   // allocated bytes per second
	OrderCount  Order = "count"  // live blocks
)

// Orders returns all orders of rows.
func Orders() []string {
	return []string{string(OrderLive), string(OrderGrowth), string(OrderRate), string(OrderCount)}
}

// after returns the word that follows another one in a list, the first one after the last.
func after(words []string, word string) string {
	return words[(slices.Index(words, word)+1)%len(words)]
}
