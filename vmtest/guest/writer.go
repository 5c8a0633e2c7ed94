package guest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
)

// dataLine is how many bytes of a file are in a line.
const dataLine = 3 * 256

// Writer writes the reports of a guest. Several goroutines may write output of a job.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	token   string
	midLine bool // the last byte did not end a line
}

// NewWriter returns a Writer for the console of a machine with this token.
func NewWriter(w io.Writer, token string) *Writer { return &Writer{w: w, token: token} }

// Write passes on the output of a job.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p) > 0 {
		w.midLine = p[len(p)-1] != '\n'
	}
	return w.w.Write(p)
}

// report writes a line of init.
func (w *Writer) report(format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := w.token + " " + fmt.Sprintf(format, args...) + "\n"
	if w.midLine {
		line = "\n" + line
	}
	w.midLine = false
	_, err := io.WriteString(w.w, line)
	return err
}

// Up reports that the guest runs, and its kernel.
func (w *Writer) Up(release string) error { return w.report("%s %q", wordUp, release) }

// Start reports that a job starts.
func (w *Writer) Start(job int) error { return w.report("%s %d", wordStart, job) }

// End reports how a job ended.
func (w *Writer) End(job, status int) error { return w.report("%s %d %d", wordEnd, job, status) }

// Error reports that part of a job failed.
func (w *Writer) Error(job int, err error) error {
	return w.report("%s %d %q", wordError, job, err.Error())
}

// Over reports that all jobs have ended.
func (w *Writer) Over() error { return w.report("%s", wordOver) }

// File sends a file back.
func (w *Writer) File(job int, path string, content []byte) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(content); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := w.report("%s %d %q", wordFile, job, path); err != nil {
		return err
	}
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), dataLine)
		if err := w.report("%s %s", wordData, base64.StdEncoding.EncodeToString(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	sum := sha256.Sum256(content)
	return w.report("%s %s", wordSum, hex.EncodeToString(sum[:]))
}
