package main

import (
	"fmt"
	"os"
	"path/filepath"

	"rtrace-bpf/internal/analysis/pagemap"
	"rtrace-bpf/internal/cli"
)

// attachments are what the pagemap module attaches to a trace.
type attachments struct {
	areas []pagemap.Area
	pages *pagemap.Pages // nil if missing and not needed
	file  *os.File       // of pages
	err   error          // of reading pages
}

// maxMaps is the largest copy of /proc/PID/maps that is read, in bytes.
const maxMaps = 1 << 30

// open reads the maps of a trace and opens its page flags. If these are missing, that is an
// error only if they are needed.
func (a *attachments) open(p *postprocess, env *environment, needed bool) error {
	f, size, err := openAttachment(p, env, "maps")
	if err != nil {
		return err
	}
	defer f.Close()
	if size > maxMaps {
		return fmt.Errorf("attachment %s has %d bytes; the limit is %d", f.Name(), size, maxMaps)
	}
	if a.areas, err = pagemap.ReadMaps(f); err != nil {
		return fmt.Errorf("attachment %s: %w", f.Name(), err)
	}
	file, size, err := openAttachment(p, env, "pageflags")
	if err != nil {
		if needed {
			return err
		}
		return nil
	}
	a.file = file
	if a.pages, err = pagemap.OpenPages(file, size); err != nil && needed {
		return fmt.Errorf("attachment %s: %w", file.Name(), err)
	}
	return nil
}

// pageSize is that of the traced machine, if known.
func (a *attachments) pageSize() uint64 {
	if a.pages == nil || a.pages.PageSize == 0 {
		return 4096
	}
	return a.pages.PageSize
}

// has reports whether the page of an address has one of some flags.
func (a *attachments) has(area int, address, mask uint64) bool {
	in := &a.areas[area]
	page, _, err := a.pages.Page(in, (address-in.Start)/a.pageSize())
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("attachment %s: %w", a.file.Name(), err)
	}
	return page.Flags&mask != 0
}

func (a *attachments) close() {
	if a.file != nil {
		_ = a.file.Close() // only read
	}
}

// openAttachment opens the attachment of a trace with the given name. A relative path is
// relative to the folder of the trace.
func openAttachment(p *postprocess, env *environment, name string) (f *os.File, size int64, err error) {
	path := ""
	for _, r := range env.files {
		if r.Attachment.Name == name {
			path = r.Attachment.Path
			break
		}
	}
	if path == "" {
		return nil, 0, cli.WithHint(fmt.Errorf("%s has no attachment %q", p.in.name(), name),
			"the pagemap module of sp-rtrace attaches it when tracing stops")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.in.path), path)
	}
	doing := "opening the attachment " + name
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: %s is not a regular file", doing, path)
	}
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, 0, cli.WithHint(cli.FileError(doing, path, err), "it must be next to the trace, as recorded")
	}
	return f, info.Size(), nil
}
