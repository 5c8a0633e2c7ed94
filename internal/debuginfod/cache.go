package debuginfod

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// temporary begins the names of files that are not complete.
const temporary = ".part-"

// maxPart is how old a file that is not complete may be: its process is gone then.
const maxPart = 24 * time.Hour

// prune removes the files that were not used for the longest time until there is
// room for n more bytes, and what processes left behind that were killed.
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
			return nil // what cannot be looked at stays
		}
		info, err := d.Info()
		if err != nil {
			return nil // it is gone
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
			_ = os.Remove(filepath.Dir(f.path)) // if nothing else is in it
			sum -= f.size
		}
	}
}
