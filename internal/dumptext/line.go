// Package dumptext implements what the texts of all dumps have in common. A
// line begins with the offset of the bytes that it describes, in base 16, their
// number, and a word.
package dumptext

import (
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/window"
)

// Raw is the word of lines with raw bytes, at most rawLine in a line.
const Raw = "RAW"

const rawLine = 64

// Line writes lines.
type Line struct {
	W    io.Writer
	Text []byte // the line so far
}

// Start begins a line.
func (l *Line) Start(offset int64, size int, word string) {
	var room [20]byte
	l.Text = l.Text[:0]
	l.right(strconv.AppendInt(room[:0], offset, 16), 8, '0')
	l.Text = append(l.Text, ' ')
	l.right(strconv.AppendInt(room[:0], int64(size), 10), 5, ' ')
	l.Text = append(append(l.Text, ' '), word...)
}

func (l *Line) right(s []byte, width int, pad byte) {
	for range width - len(s) {
		l.Text = append(l.Text, pad)
	}
	l.Text = append(l.Text, s...)
}

// Key begins a field; append its value to Text.
func (l *Line) Key(name string) {
	l.Text = append(append(append(l.Text, ' '), name...), '=')
}

// Hex adds a field of bytes in base 16.
func (l *Line) Hex(name string, b []byte) {
	l.Key(name)
	l.Text = hex.AppendEncode(l.Text, b)
}

// End writes the line.
func (l *Line) End() error {
	_, err := l.W.Write(append(l.Text, '\n'))
	return err
}

// Rest writes the rest of an input as Raw lines.
func (l *Line) Rest(in *window.Window) error {
	for in.Have(1) {
		in.Have(rawLine)
		b := in.Bytes()
		b = b[:min(len(b), rawLine)]
		l.Start(in.Offset(), len(b), Raw)
		l.Hex("data", b)
		if err := l.End(); err != nil {
			return err
		}
		in.Skip(len(b))
	}
	if err := in.Err(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
