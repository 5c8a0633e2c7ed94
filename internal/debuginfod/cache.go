package debuginfod

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// temporary is the prefix of incomplete files.
const temporary = ".part-"

// maxPart is the age from which an incomplete file is removed. Its process must
// have ended by then.
const maxPart = 24 * time.Hour

// prune removes the least recently used files until there is room for n more
// bytes, and the incomplete files of processes that were killed.
func (c *Client) prune(n int64) {
	limit := c.MaxCache
	if limit == 0 {
		limit = DefaultMaxCache
	}
	type kept struct {
		path string
		size int64
		used time.Time
	}
	var (
		files []kept
		sum   int64
	)
	old := time.Now().Add(-maxPart)
	_ = filepath.WalkDir(c.Folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // unreadable files stay
		}
		info, err := d.Info()
		if err != nil {
			return nil // it was removed meanwhile
		}
		if strings.HasPrefix(d.Name(), temporary) {
			if info.ModTime().Before(old) {
				_ = os.Remove(path)
			}
			return nil
		}
		files = append(files, kept{path, info.Size(), info.ModTime()})
		sum += info.Size()
		return nil
	})
	slices.SortFunc(files, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if sum+n <= limit {
			return
		}
		if os.Remove(f.path) == nil {
			_ = os.Remove(filepath.Dir(f.path)) // fails unless it is empty
			sum -= f.size
		}
	}
}
