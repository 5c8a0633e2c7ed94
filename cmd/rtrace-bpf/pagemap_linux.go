package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/pageflags"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/trace"
)

// pagemapModule is the name of the module that attaches files about pages, which has no
// calls.
const pagemapModule = "pagemap"

// pagemapAttachments are the names of what it attaches, as those of sp-rtrace.
var pagemapAttachments = []string{"maps", "pageflags"}

// pagemapped says whether pages are to be told of.
func (c *config) pagemapped() bool { return c.pagemap || c.modules.has(pagemapModule) }

// checkPagemap says what --pagemap does not go with.
func (c *config) checkPagemap() error {
	if !c.pagemapped() {
		return nil
	}
	for _, a := range c.attach {
		if slices.Contains(pagemapAttachments, a.name) {
			return fmt.Errorf("--pagemap attaches %s itself: give that of --attach another name", a.name)
		}
	}
	return c.checkAttaching("--pagemap")
}

// openPagemap checks that the pages can be looked at, before anything is attached.
func (x *session) openPagemap() error {
	if !x.config.pagemapped() {
		return nil
	}
	if !x.out.Regular() {
		return cli.Usagef("--pagemap writes files to the folder of the trace, and %s is no file: name a file or a directory", x.out.Path())
	}
	var err error
	if x.pages, err = pageflags.Open(x.pid); err != nil {
		return cli.WithHint(fmt.Errorf("--pagemap: %w", err), "it needs root, or CAP_SYS_ADMIN and the right to read /proc/kpageflags")
	}
	return nil
}

// closePages lets go of the process.
func (x *session) closePages() {
	if x.pages != nil {
		x.pages.Close()
		x.pages = nil
	}
}

// tellPages attaches what the kernel says of the pages before the record that ends the
// trace.
func (x *session) tellPages(rec *trace.Record) error {
	if x.pages == nil {
		return nil
	}
	switch {
	case rec.Kind == trace.KindExec: // it is other memory now
		x.closePages()
		if err := x.openPagemap(); err != nil {
			x.status.print("process %d: its pages are not told: %v", x.pid, err)
		}
		return nil
	case rec.Kind != trace.KindEnd && (rec.Kind != trace.KindExit || !rec.Exit.Process):
		return nil
	}
	pages := x.pages
	x.pages = nil
	defer pages.Close()
	files, err := x.createPagemap()
	left := 0
	if err == nil {
		limit := int64(math.MaxInt64)
		if x.config.maxSize > 0 {
			limit = int64(x.config.maxSize) - x.written()
		}
		left, err = pages.Write(files[0], files[1], limit)
	}
	if errors.Is(err, pageflags.ErrGone) {
		x.status.print("process %d: its pages are not told: %v", x.pid, pageflags.ErrGone)
		return errors.Join(files[0].Discard(), files[1].Discard())
	}
	for i, f := range files {
		x.attached = append(x.attached, f)
		if err != nil {
			continue
		}
		a := trace.Attachment{Name: pagemapAttachments[i], Path: filepath.Base(f.Path())}
		err = x.put(&trace.Record{Kind: trace.KindAttachment, Time: rec.Time, PID: int32(x.pid), Attachment: a})
	}
	if left > 0 {
		x.status.print("process %d: the pages of %d mappings are not told: there is no room for them", x.pid, left)
	}
	if err != nil {
		return fmt.Errorf("--pagemap: %w", err)
	}
	return nil
}

// createPagemap creates the files to be attached.
func (x *session) createPagemap() (files []*outfile.File, err error) {
	for _, name := range pagemapAttachments {
		f, e := outfile.CreateNumbered(filepath.Dir(x.out.Path()), fmt.Sprintf("%d-%s-%s", x.pid, pagemapModule, name), "")
		if e != nil {
			for _, f := range files {
				e = errors.Join(e, f.Discard())
			}
			return nil, e
		}
		files = append(files, f)
	}
	return files, nil
}
