// Package trace is the vocabulary that the tracer, all encoders, decoders, filters
// and analyses share: a [Record] with a [Kind], read from a [Reader] and written to
// a [Writer].
//
// A Record is borrowed. Slices and strings that a reader makes from its buffers are
// valid until the next ReadRecord on that reader, unless the reader's documentation
// gives them to the caller. [Record.Clone] makes a copy that shares no slice with a
// reader.
//
// Times are in nanoseconds of the trace's clock (see [Clock]). Addresses and sizes
// have 64 bits whatever the traced process uses. A field that a format cannot hold is
// zero.
//
// The package imports nothing but the standard library.
package trace
