package linecache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/internal/symbol"
)

// Limits of a cache.
const (
	DefaultMaxSize = 256 << 20 // bytes of all files
	maxFile        = 16 << 20  // bytes of one
	maxLists       = 1 << 18   // addresses of one
)

// Names of files.
const (
	suffix    = ".lines"
	temporary = ".part-"
)

// maxPart is the age from which an incomplete file is removed. Its process has ended by
// then.
const maxPart = 24 * time.Hour

// settled is how long ago a file must have changed for its timestamp to be reliable. A
// second change within the same clock tick would have the same timestamp.
const settled = 2 * time.Second

// Cache is a folder of answers. Several processes may use the same folder, but a Cache
// itself is not safe for concurrent use.
type Cache struct {
	// MaxSize bounds the bytes of all files; 0 means DefaultMaxSize.
	MaxSize int64
	// Producer is the program that found the answers, with its version. Answers of another
	// producer are not used.
	Producer string

	dir string
}

// ErrForeign reports that a folder belongs to another user, or that another user can change
// it.
var ErrForeign = errors.New("the folder, or the one that contains it, can be changed by another user")

// Open returns the cache in a folder, which it creates if necessary. The error is
// ErrForeign if somebody else might have written what is there.
func Open(dir string) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	above := filepath.Dir(dir)
	for {
		info, err := os.Stat(above)
		if err == nil {
			if !info.IsDir() || !trusted(info) {
				return nil, ErrForeign
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || above == filepath.Dir(above) {
			return nil, err
		}
		above = filepath.Dir(above)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir) // do not follow a link: its target was not checked
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a folder")}
	}
	if !private(info) {
		return nil, ErrForeign
	}
	return &Cache{dir: dir}, nil
}

// key returns everything that identifies an answer: the producer, the scope and the file.
func (c *Cache) key(f *symbol.File, scope string) string {
	size, changed := f.Stamp()
	return strings.Join([]string{c.Producer, scope, f.Name(), f.BuildID(), strconv.FormatInt(size, 10), strconv.FormatInt(changed, 10)}, "\x00")
}

// path returns the name of the file for a key. It contains the build ID, so that people can
// find it, and a hash of the key.
func (c *Cache) path(key, buildID string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:16])
	if buildID != "" {
		name = buildID[:min(len(buildID), 40)] + "-" + name
	}
	return filepath.Join(c.dir, name+suffix)
}

// Load returns what is kept for a file; the entry is empty if nothing is kept or what is
// kept is outdated. scope distinguishes answers that were found in different ways, for
// example with other folders of debug files. Load returns nil for a file that is not on
// disk or has only just been changed. c may be nil.
func (c *Cache) Load(f *symbol.File, scope string) *Entry {
	if c == nil || f.Name() == "" {
		return nil
	}
	if _, changed := f.Stamp(); time.Since(time.Unix(0, changed)) < settled {
		return nil
	}
	key := c.key(f, scope)
	e := newEntry(c, key, c.path(key, f.BuildID()))
	if e.read() == nil {
		now := time.Now()
		_ = os.Chtimes(e.path, now, now) // marks it as used
	}
	return e
}

// write atomically replaces a file.
func (c *Cache) write(path string, data []byte) error {
	f, err := os.CreateTemp(c.dir, temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// prune removes the least recently used files until there is room for n more bytes. It also
// removes the incomplete files of processes that were killed. The file at keep is not
// removed, because it is about to be replaced.
func (c *Cache) prune(n int64, keep string) error {
	limit := c.MaxSize
	if limit == 0 {
		limit = DefaultMaxSize
	}
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	sum := n
	for _, d := range list {
		info, err := d.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasPrefix(d.Name(), temporary):
			if time.Since(info.ModTime()) > maxPart {
				_ = os.Remove(filepath.Join(c.dir, d.Name()))
			}
		case strings.HasSuffix(d.Name(), suffix) && d.Name() != filepath.Base(keep):
			files = append(files, info)
			sum += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if sum <= limit {
			break
		}
		if os.Remove(filepath.Join(c.dir, f.Name())) == nil {
			sum -= f.Size()
		}
	}
	if sum > limit {
		return fmt.Errorf("the symbol cache has no room for %d bytes", n)
	}
	return nil
}
