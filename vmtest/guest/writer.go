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

// dataLine is how many bytes of a file a line carries.
const dataLine = 3 * 256

// Writer writes what a guest says. Output of a job may come from several
// goroutines.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	token   string
	midLine bool // the last byte was not the end of a line
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

// say writes a line of init's own.
func (w *Writer) say(format string, args ...any) error {
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

// Up says that the guest runs, and with which kernel.
func (w *Writer) Up(release string) error { return w.say("%s %q", wordUp, release) }

// Start says that a job starts.
func (w *Writer) Start(job int) error { return w.say("%s %d", wordStart, job) }

// End says how a job ended.
func (w *Writer) End(job, status int) error { return w.say("%s %d %d", wordEnd, job, status) }

// Error says that something of a job could not be done.
func (w *Writer) Error(job int, err error) error {
	return w.say("%s %d %q", wordError, job, err.Error())
}

// Over says that nothing more follows.
func (w *Writer) Over() error { return w.say("%s", wordOver) }

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
	if err := w.say("%s %d %q", wordFile, job, path); err != nil {
		return err
	}
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), dataLine)
		if err := w.say("%s %s", wordData, base64.StdEncoding.EncodeToString(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	sum := sha256.Sum256(content)
	return w.say("%s %s", wordSum, hex.EncodeToString(sum[:]))
}
