// Package topview makes the views of rtrace-bpf top: rows of call sites or of what they have
// in common, the lines about the processes, and the screens of the terminal interface. It
// turns snapshots and keys into text, and knows neither processes nor terminals. Names of
// the target are made safe for a terminal here.
package topview
