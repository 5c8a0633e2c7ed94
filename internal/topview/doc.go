// Package topview makes the views of rtrace-bpf top: rows of call sites or of what they have
// in common, the lines about the processes, and the screens of the terminal interface. It
// turns snapshots and keys into text, and knows neither processes nor terminals. Names of
// the target are made safe for a terminal here.
//
// A Model joins the parts. A query selects rows and their order, names gives them texts, and
// history follows their figures from snapshot to snapshot. From these and a Snapshot follows a
// listing, which is all that tables, JSON and screens show. A screen holds what only the terminal
// interface has, such as the cursor. Keys are commands that change one of these.
package topview
