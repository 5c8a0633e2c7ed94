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

// maxPart is how old a file that is not complete may be: its process is gone then.
const maxPart = 24 * time.Hour

// settled is how long a file must not have been changed for its time to tell it
// from a later one: a change within the same tick of the clock has the same time.
const settled = 2 * time.Second

// Cache is a folder. Several processes may have the same one; a Cache itself is
// not safe for concurrent use.
type Cache struct {
	// MaxSize bounds the bytes of all files; 0 means DefaultMaxSize.
	MaxSize int64
	// Producer is what made the answers: the program and its version. Those of
	// another one are not used.
	Producer string

	dir string
}

// ErrForeign says that a folder belongs to another user, or may be changed by one.
var ErrForeign = errors.New("the folder, or the one that it is in, is not only this user's")

// Open returns the cache in a folder, which is made if need be. The error is
// ErrForeign if others might have written what is there.
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
	info, err := os.Lstat(dir) // no link: what it leads to was not looked at
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

// key is all that makes an answer the same one: who gives it, and the file.
func (c *Cache) key(f *symbol.File, scope string) string {
	size, changed := f.Stamp()
	return strings.Join([]string{c.Producer, scope, f.Name(), f.BuildID(), strconv.FormatInt(size, 10), strconv.FormatInt(changed, 10)}, "\x00")
}

// path returns the file of a key: the build-id, so that people find it, and what
// tells different keys apart.
func (c *Cache) path(key, buildID string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:16])
	if buildID != "" {
		name = buildID[:min(len(buildID), 40)] + "-" + name
	}
	return filepath.Join(c.dir, name+suffix)
}

// Load returns what is kept of a file, nothing if that is of no use any more.
// scope tells apart answers that are made in different ways, as from other folders
// of debug files. It returns nil for a file that is not on disk or was changed just
// now. c may be nil.
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
		_ = os.Chtimes(e.path, now, now) // it was used
	}
	return e
}

// write puts a file in place of the one that is there.
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

// prune removes what was not used for the longest time until there is room for n
// more bytes, and what processes left behind that were killed. The file at keep is
// about to be replaced.
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
