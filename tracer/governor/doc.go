// Package governor keeps the probes where they are wanted while a recording lasts: it
// detaches them for a while when there are too many calls, and has another thread carry
// them when theirs has ended.
package governor
