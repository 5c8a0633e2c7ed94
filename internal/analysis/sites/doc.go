// Package sites represents the places in a program that calls come from.
//
// A [Table] stores each distinct place once, as a number: the stack with its
// texts, and the caller. A [Place] is the parsed text of a frame, a [Frame] is
// an address with its place, and a [Grouper] adds up blocks with the same
// place, size, thread, module and so on.
package sites
