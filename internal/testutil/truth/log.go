package truth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The layout of testdata/progs/shim_log.h.
const (
	logMagic   = "SHIMLOG\x00"
	logVersion = 1
	blockBytes = 64 << 10
	entryWords = 6
)

// Log is the log of a process from its start, or an exec, to its end or the next exec. Its
// methods read the file. They may be called while the process runs, and then return what is
// there so far.
type Log struct {
	PID        int
	Word       int    // bytes of a pointer
	Start, End uint64 // of the shim in memory
	Unlogged   uint64 // calls that the shim passed on before it had a log
	Foreign    uint64 // calls by children of vfork

	path    string
	names   [len(Functions)]string
	threads map[int32][]int64 // offsets of their blocks, in order
}

// Open opens the logs of a process in dir, from its start: one more for each exec.
func Open(dir string, pid int) ([]*Log, error) {
	var all []*Log
	for {
		l, err := openLog(filepath.Join(dir, fmt.Sprintf("%d-%d", pid, len(all))))
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(all) > 0:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("log of process %d: %w", pid, err)
		}
		all = append(all, l)
	}
}

func openLog(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	words, err := readWords(f, 0, 9+len(Functions))
	if err != nil {
		return nil, fmt.Errorf("read the head of %s: %w", path, err)
	}
	magic := binary.NativeEndian.AppendUint64(nil, words[0])
	if string(magic) != logMagic || words[1] != logVersion {
		return nil, fmt.Errorf("%s is not a log of version %d", path, logVersion)
	}
	l := &Log{
		PID: int(words[3]), Word: int(words[2]), Start: words[5], End: words[6],
		Unlogged: words[7], Foreign: words[8], path: path, threads: map[int32][]int64{},
	}
	l.name(words[9:])
	for n := range int64(words[4]) {
		offset := (n + 1) * blockBytes
		head, err := readWords(f, offset, 1)
		if errors.Is(err, io.EOF) || err == nil && head[0] == 0 {
			continue // its thread was killed before it used the block
		}
		if err != nil {
			return nil, fmt.Errorf("read block %d of %s: %w", n, path, err)
		}
		tid := int32(head[0])
		l.threads[tid] = append(l.threads[tid], offset)
	}
	return l, nil
}

// name determines the names of functions in a trace, from their addresses.
func (l *Log) name(addresses []uint64) {
	first := map[uint64]string{}
	for i, name := range Functions {
		if first[addresses[i]] == "" {
			first[addresses[i]] = name
		}
		l.names[i] = first[addresses[i]]
	}
}

func readWords(f *os.File, offset int64, n int) ([]uint64, error) {
	raw := make([]byte, 8*n)
	if _, err := f.ReadAt(raw, offset); err != nil {
		return nil, err
	}
	words := make([]uint64, n)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(raw[8*i:])
	}
	return words, nil
}
