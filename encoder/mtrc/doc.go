// Package mtrc writes traces as tracing files of mpatrol, version 1.5.1, for its
// mptrace. docs/formats/mtrc.md describes the format and what it cannot hold.
//
// [Indexer] turns records into the events of a file that follow the rules for such
// files, and [Writer] writes them.
package mtrc

import (
	"errors"
	"fmt"
)

// Options are the options of a Writer. The zero value is right for live traces and for
// rewriting a file unchanged.
type Options struct {
	// Words is the size in bytes of each word in the header: 4 or 8. 0 means the
	// pointer size in the trace's header, or else 8. mptrace reads only files of its
	// own word size.
	Words int
	// Legacy keeps every number below 2^31, so that the unmodified 64-bit mptrace reads
	// the file correctly, whatever its size. Section "Legacy" of docs/formats/mtrc.md
	// describes what happens to addresses, sizes and threads.
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
