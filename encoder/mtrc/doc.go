// Package mtrc writes traces as tracing files of mpatrol, version 1.5.1, which
// its mptrace reads. docs/formats/mtrc.md describes the format and what is lost.
//
// [Indexer] turns records into the events of a file and keeps the rules of
// them, [Writer] writes them.
package mtrc

import (
	"errors"
	"fmt"
)

// Options are the choices of a Writer. The zero value is for live traces and for
// writing a file again as it was.
type Options struct {
	// Words is how many bytes each word of the header has: 4, or 8; 0 means
	// the pointer size that the trace's header names, or else 8. mptrace
	// reads only files of its own word size.
	Words int
	// Legacy keeps every number below 2^31, so that the unmodified mptrace of
	// 64 bits reads the file right, whatever its size. See Legacy in
	// docs/formats/mtrc.md for what becomes of addresses, sizes and threads.
	Legacy bool
}

func (o *Options) check() error {
	if o.Words != 0 && o.Words != 4 && o.Words != 8 {
		return fmt.Errorf("mtrc: header words have 4 or 8 bytes, not %d", o.Words)
	}
	if o.Legacy && o.Words == 4 {
		return errors.New("mtrc: the legacy form is for the 64-bit mptrace; its header words have 8 bytes")
	}
	return nil
}
