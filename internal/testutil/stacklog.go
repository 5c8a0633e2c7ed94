package testutil

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// LoggedCall is a call of the allocator with the stack that the program itself found, with
// backtrace() unless the program documents another way: the ground truth for a trace.
type LoggedCall struct {
	Call // Function is empty

	// Frames holds return addresses, the innermost first. The first is in the function that
	// called the allocator, but at the call of the logger.
	Frames []uint64
}

// The log of testdata/progs/stacklog.h, in 64-bit words.
const (
	stackLogHead = 6       // words of an entry before its frames
	stackLogMost = 1 << 20 // words of an entry
)

// StackLogPath returns a path for the log of a program that logs its stacks. The log is removed
// with the test.
func StackLogPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "stacks.log")
}

// StackLog reads the log of a program that has ended or is at its gate.
func StackLog(t testing.TB, path string) []LoggedCall {
	t.Helper()
	words, err := readStackLog(path)
	if err != nil {
		t.Fatalf("log of stacks: %v", err)
	}
	log, err := parseStackLog(words)
	if err != nil {
		t.Fatalf("log of stacks %s: %v", path, err)
	}
	if len(log) == 0 {
		t.Fatalf("log of stacks %s: the program has logged nothing", path)
	}
	return log
}

// readStackLog returns the words in use. The file is much larger, and sparse.
func readStackLog(path string) ([]uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var first [8]byte
	if _, err := f.ReadAt(first[:], 0); err != nil {
		return nil, fmt.Errorf("read the length: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := binary.NativeEndian.Uint64(first[:])
	if n == 0 || n > uint64(st.Size())/8 {
		return nil, fmt.Errorf("%d words in %d bytes", n, st.Size())
	}
	raw := make([]byte, n*8)
	if _, err := f.ReadAt(raw, 0); err != nil {
		return nil, fmt.Errorf("read %d words: %w", n, err)
	}
	words := make([]uint64, n)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(raw[8*i:])
	}
	return words[1:], nil
}

// loggedOps holds the operations as in Call, by enum op of prog.h.
var loggedOps = [...]string{1: "alloc", 2: "free", 3: "move"}

// parseStackLog parses the words after the length. The returned frames are parts of words.
func parseStackLog(words []uint64) ([]LoggedCall, error) {
	var log []LoggedCall
	for at := 0; at < len(words); {
		rest := words[at:]
		n := rest[0]
		if n <= stackLogHead || n > stackLogMost || n > uint64(len(rest)) {
			return nil, fmt.Errorf("word %d: an entry of %d words", at, n)
		}
		entry := rest[:n]
		op := entry[2]
		if op == 0 || op >= uint64(len(loggedOps)) {
			return nil, fmt.Errorf("word %d: operation %d", at, op)
		}
		if entry[1] == 0 || entry[1] > 1<<30 {
			return nil, errors.New("an entry that a thread reserved and did not fill")
		}
		log = append(log, LoggedCall{
			Call: Call{
				TID: int(entry[1]), Op: loggedOps[op], Old: entry[3], Ptr: entry[4], Size: entry[5],
			},
			Frames: entry[stackLogHead:],
		})
		at += int(n)
	}
	return log, nil
}
