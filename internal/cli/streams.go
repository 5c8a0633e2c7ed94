package cli

import (
	"io"
	"os"
)

// Streams are the three streams of a command. Data goes only to Out; messages and progress
// go to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	// Whether the stream is a terminal.
	InTerminal, OutTerminal, ErrTerminal bool
}

// FileStreams returns the streams of a process, made of the given files.
func FileStreams(in, out, err *os.File) Streams {
	return Streams{
		In: in, Out: out, Err: err,
		InTerminal:  IsTerminal(in),
		OutTerminal: IsTerminal(out),
		ErrTerminal: IsTerminal(err),
	}
}
