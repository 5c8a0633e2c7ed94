// Package debuginfod gets files by build-id from servers that speak the protocol
// of elfutils' debuginfod: GET /buildid/ID/debuginfo and /buildid/ID/executable.
// What was got is kept in a folder, which does not grow without end.
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

// Limits of a Client that has none of its own.
const (
	DefaultMaxFile  = 2 << 30 // bytes
	DefaultMaxCache = 8 << 30 // bytes
	DefaultTimeout  = 5 * time.Minute
)

// Client asks servers. It is not safe for concurrent use, but several processes
// may have the same folder.
type Client struct {
	// URLs are the servers, asked in their order.
	URLs []string
	// Folder is where files are kept. It is created if need be.
	Folder string
	// MaxFile bounds the bytes of one file, MaxCache those of all that are kept;
	// Timeout bounds one download. 0 means the default.
	MaxFile, MaxCache int64
	Timeout           time.Duration
	// HTTP makes the requests; nil is http.DefaultClient.
	HTTP *http.Client
	// Warn, if not nil, is told why a file could not be got, unless the server
	// just has not got it.
	Warn func(error)

	missing map[string]bool // files that no server has
	down    map[string]bool // servers that do not answer
}

// ParseURLs splits a list as DEBUGINFOD_URLS holds it: separated by blanks, with
// words between that are no servers. It is an error if there is none.
func ParseURLs(list string) (urls []string, err error) {
	for word := range strings.FieldsSeq(list) {
		u, err := url.Parse(word)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			if strings.HasPrefix(word, "ima:") {
				continue // a policy of elfutils
			}
			return nil, fmt.Errorf("%q is no URL of a server (http:// or https://)", word)
		}
		urls = append(urls, strings.TrimRight(word, "/"))
	}
	if len(urls) == 0 {
		return nil, errors.New("no URL of a server is given")
	}
	return urls, nil
}

// Fetch returns the path of the debug file, or else of the file, with the given
// build-id in hexadecimal, or nothing if it cannot be had.
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
		// The oldest go first. A file in use keeps its time, by which it is known.
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

// warn tells what is wrong with a server and does not ask it again, unless that
// was about one file only.
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

// isBuildID says whether a text is a build-id, and so no path.
func isBuildID(s string) bool {
	return len(s) > 2 && len(s) <= 128 && strings.Trim(s, "0123456789abcdef") == ""
}

// Why a file could not be got.
var (
	errMissing = errors.New("not there")
	errTooLong = errors.New("the file is too long")
	errCut     = errors.New("the file came incomplete")
)

// get gets one file and puts it at path when it is complete.
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
		return fmt.Errorf("the server says %s", answer.Status)
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

// store writes a file that appears when it is complete. want is how many bytes
// it shall have, or below zero.
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
