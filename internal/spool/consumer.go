package spool

import (
	"io"
	"os"
)

// consumer reads a file from its start and gives back what it has read, so that
// what is made of a spool can take its place on a disk that is full.
type consumer struct {
	f     *os.File
	at    int64 // next byte to read
	size  int64
	freed int64 // bytes given back
}

// pageBytes is the unit in which a file's memory is given back; a larger one
// of the file system keeps a little longer.
const pageBytes = 4096

func (c *consumer) Read(p []byte) (int, error) {
	if left := c.size - c.at; int64(len(p)) > left {
		p = p[:left]
	}
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := c.f.ReadAt(p, c.at)
	c.at += int64(n)
	if whole := c.at &^ (pageBytes - 1); whole-c.freed >= blockBytes/2 {
		release(c.f, c.freed, whole-c.freed)
		c.freed = whole
	}
	return n, err
}
