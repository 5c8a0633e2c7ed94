// Package sites is about the places in a program that calls come from.
//
// A [Table] keeps each different place once, as a number: the stack with its
// texts, and the caller. A [Place] is what a text of a frame says, a [Frame] an
// address with it, and a [Grouper] adds up the blocks that come from the same
// place, or have the same size, thread, module and so on.
package sites
