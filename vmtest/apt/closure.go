package apt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Closure is packages of a release with everything that they depend on.
type Closure struct {
	// Key identifies exactly these packages and versions.
	Key     string
	from    *Private
	install []string // arguments of apt-get
}

// Closure finds which packages the named ones need to run. release is a code name, such as
// bookworm.
func (p *Private) Closure(ctx context.Context, release string, names []string) (*Closure, error) {
	c := &Closure{from: p, install: []string{
		"install", "-q", "-y", "--no-install-recommends",
		// Others may use the same lists at the same time, because they are only read.
		"-o", "Debug::NoLocking=true",
		"-o", "APT::Default-Release=/^" + release + "(-security)?$/",
	}}
	c.install = append(c.install, slices.Sorted(slices.Values(names))...)
	// If no package was downloaded yet, apt lists all of them.
	empty, err := os.MkdirTemp(p.dir, "none-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty)
	out, err := p.aptGet(ctx, empty, slices.Concat(c.install, []string{"--print-uris"})...)
	if err != nil {
		return nil, fmt.Errorf("find what %s of %s depend on: %w", strings.Join(names, ", "), release, err)
	}
	files, err := parseURIs(out)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	for _, file := range files {
		hash.Write([]byte(file + "\n"))
	}
	c.Key = hex.EncodeToString(hash.Sum(nil)[:8])
	return c, nil
}

// aptGet runs apt-get with another folder for its downloads.
func (p *Private) aptGet(ctx context.Context, archives string, args ...string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return nil, err
	}
	return p.run(ctx, "apt-get", append(args, "-o", "Dir::Cache::archives="+archives)...)
}

// parseURIs returns the files that apt-get --print-uris lists, with size and checksum, sorted.
func parseURIs(out []byte) ([]string, error) {
	var all []string
	for line := range bytes.Lines(out) {
		rest, ok := strings.CutPrefix(string(line), "'")
		if !ok {
			continue // apt's messages for people
		}
		_, file, ok := strings.Cut(rest, "' ")
		if !ok || len(strings.Fields(file)) < 2 {
			return nil, fmt.Errorf("read the output of apt-get: line %q has no file", line)
		}
		all = append(all, strings.TrimSpace(file))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read the output of apt-get: it names no files: %.200q", out)
	}
	slices.Sort(all)
	return all, nil
}

// Unpack downloads the packages and unpacks the files for which wanted returns true into dir.
// It does not keep the downloads.
func (c *Closure) Unpack(ctx context.Context, dir string, wanted func(name string) bool) error {
	debs, err := os.MkdirTemp(c.from.dir, "closure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(debs)
	if _, err := c.from.aptGet(ctx, debs, slices.Concat(c.install, []string{"--download-only"})...); err != nil {
		return fmt.Errorf("download packages: %w", err)
	}
	found, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("download packages: apt-get left none")
	}
	for _, deb := range found {
		if err := Unpack(ctx, deb, dir, wanted); err != nil {
			return err
		}
	}
	return nil
}
