// Package probe attaches the probes of a trace to the process, and moves them: it removes
// and attaches them again, attaches them to another thread, keeps them in place without
// their thread, and checks whether they are there.
//
// [Probes] are all probes of a trace, [Functions] those of traced functions among them.
// Processes of their own hold the probes, see package keeper.
package probe
