// Package trace is the vocabulary that the tracer, every encoder and decoder,
// every filter and every analysis speak: one reused [Record] with a [Kind],
// read from a [Reader] and written to a [Writer].
//
// A Record is borrowed: slices and strings built from a reader's buffers are
// valid until the next ReadRecord on that reader, unless a field says that the
// caller owns it. [Record.Clone] makes an independent copy.
//
// Times are nanoseconds of the trace's clock (see [Clock]), addresses and
// sizes are 64 bit whatever the traced process used, and a field that a format
// cannot carry is zero.
//
// The package imports nothing but the standard library.
package trace
