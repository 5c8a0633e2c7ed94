// Package debuginfod downloads files by build ID from servers with the protocol
// of elfutils' debuginfod: GET /buildid/ID/debuginfo and
// /buildid/ID/executable. It keeps downloaded files in a cache folder of
// bounded size.
package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Default limits of a Client.
const (
	DefaultMaxFile  = 2 << 30 // bytes
	DefaultMaxCache = 8 << 30 // bytes
	DefaultTimeout  = 5 * time.Minute
)

// Client downloads files. It is not safe for concurrent use, but several
// processes may share the same folder.
type Client struct {
	// URLs are the servers, in the order in which they are tried.
	URLs []string
	// Folder is the cache folder. It is created if needed.
	Folder string
	// MaxFile limits the size of one file and MaxCache that of all cached
	// files, in bytes. Timeout limits one download. 0 means the default.
	MaxFile, MaxCache int64
	Timeout           time.Duration
	// HTTP makes the requests; nil means http.DefaultClient.
	HTTP *http.Client
	// Warn, if not nil, is called with the reason why a download failed, unless
	// the server merely does not have the file.
	Warn func(error)

	missing map[string]bool // files that could not be downloaded
	down    map[string]bool // servers that failed
}

// ParseURLs parses the value of DEBUGINFOD_URLS: URLs separated by blanks, with
// policies of elfutils ("ima:…") between them, which it ignores. It returns an
// error if there is no URL.
func ParseURLs(list string) (urls []string, err error) {
	for word := range strings.FieldsSeq(list) {
		u, err := url.Parse(word)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			if strings.HasPrefix(word, "ima:") {
				continue
			}
			return nil, fmt.Errorf("%q is not the URL of a server (http:// or https://)", word)
		}
		urls = append(urls, strings.TrimRight(word, "/"))
	}
	if len(urls) == 0 {
		return nil, errors.New("the list contains no URL of a server")
	}
	return urls, nil
}

// Fetch returns the path of the debug file or the executable with the given
// build ID in hexadecimal, downloading it if needed, or an empty string if that
// fails.
func (c *Client) Fetch(ctx context.Context, buildID string, debug bool) string {
	kind := "executable"
	if debug {
		kind = "debuginfo"
	}
	if !isBuildID(buildID) || c.missing[buildID+kind] {
		return ""
	}
	path := filepath.Join(c.Folder, buildID, kind)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		// The least recently used files are removed first. A recent time is
		// left unchanged, because files are identified by it.
		if now := time.Now(); now.Sub(info.ModTime()) > time.Hour {
			_ = os.Chtimes(path, now, now)
		}
		return path
	}
	for _, server := range c.URLs {
		if c.down[server] || ctx.Err() != nil {
			continue
		}
		switch err := c.get(ctx, server+"/buildid/"+buildID+"/"+kind, path); {
		case err == nil:
			return path
		case errors.Is(err, errMissing):
		default:
			c.warn(server, err)
		}
	}
	if c.missing == nil {
		c.missing = make(map[string]bool)
	}
	c.missing[buildID+kind] = true
	return ""
}

// warn reports an error of a server. The server is not asked again, unless the
// error concerned only one file.
func (c *Client) warn(server string, err error) {
	if !errors.Is(err, errTooLong) {
		if c.down == nil {
			c.down = make(map[string]bool)
		}
		c.down[server] = true
	}
	if c.Warn != nil {
		c.Warn(fmt.Errorf("asking %s: %w", server, err))
	}
}

// isBuildID reports whether a text is a build ID, and so cannot be a path.
func isBuildID(s string) bool {
	return len(s) > 2 && len(s) <= 128 && strings.Trim(s, "0123456789abcdef") == ""
}

// Reasons why a download failed.
var (
	errMissing = errors.New("not found")
	errTooLong = errors.New("the file is too long")
	errCut     = errors.New("the download is incomplete")
)

// get downloads a file and stores it at path when it is complete.
func (c *Client) get(ctx context.Context, from, path string) error {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "rtrace")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }() // only read
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return errMissing
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the server responded with %s", answer.Status)
	}
	limit := c.MaxFile
	if limit == 0 {
		limit = DefaultMaxFile
	}
	if answer.ContentLength > limit {
		return fmt.Errorf("%w: %d bytes", errTooLong, answer.ContentLength)
	}
	c.prune(max(answer.ContentLength, 0))
	return store(path, answer.Body, answer.ContentLength, limit)
}

// store writes a file that appears at path when it is complete. want is its
// expected size in bytes, or negative if unknown.
func store(path string, r io.Reader, want, limit int64) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, temporary+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	n, err := io.Copy(f, io.LimitReader(r, limit+1))
	err = errors.Join(err, f.Close())
	switch {
	case err != nil:
		return err
	case n > limit:
		return fmt.Errorf("%w: more than %d bytes", errTooLong, limit)
	case want >= 0 && n != want:
		return errCut
	}
	return os.Rename(f.Name(), path)
}
