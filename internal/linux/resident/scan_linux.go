package resident

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// Range is a range of addresses of whole pages.
type Range struct {
	Start, End uint64
}

// ErrNoScan reports a kernel without PAGEMAP_SCAN, which Linux has since 6.7.
var ErrNoScan = errors.New("the kernel has no PAGEMAP_SCAN")

// PAGEMAP_SCAN and its types, from the kernel's include/uapi/linux/fs.h.
const (
	pagemapScan   = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	categoryHere  = 1 << 3     // PAGE_IS_PRESENT
	categoryZeros = 1 << 5     // PAGE_IS_PFNZERO
	scanRegions   = 4096       // that one call returns
)

// scanArgument is struct pm_scan_arg.
type scanArgument struct {
	size, flags                  uint64
	start, end, walkEnd          uint64
	vec, vecLen, maxPages        uint64
	inverted, mask, anyOf, wants uint64
}

// scanRegion is struct page_region.
type scanRegion struct {
	Range
	categories uint64
}

// Scan calls yield for each range of resident pages up to end, which is not beyond the memory of
// programs, in the order of their addresses. Pages of
// hugetlbfs are among them, although the kernel does not count them as resident; the page of zeros
// and the memory of devices are not. The error is ErrNoScan on older kernels, and wraps
// proc.ErrGone if the process has no memory any more.
func (p *Pagemap) Scan(end uint64, yield func(Range)) error {
	regions := make([]scanRegion, scanRegions)
	a := scanArgument{
		end: end, vec: uint64(uintptr(unsafe.Pointer(&regions[0]))), vecLen: scanRegions,
		inverted: categoryZeros, mask: categoryHere | categoryZeros, wants: categoryHere,
	}
	a.size = uint64(unsafe.Sizeof(a))
	for a.start < a.end {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, p.file.Fd(), pagemapScan, uintptr(unsafe.Pointer(&a)))
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ENOTTY || errno == unix.EINVAL:
			return ErrNoScan
		case errno != 0:
			return fmt.Errorf("pages of process %d: %w (%w)", p.pid, proc.ErrGone, errno)
		case a.walkEnd <= a.start:
			return fmt.Errorf("pages of process %d: %w (the kernel's walk ends at %#x)", p.pid, proc.ErrGone, a.walkEnd)
		}
		for i := range regions[:n] {
			yield(regions[i].Range)
		}
		a.start = a.walkEnd
	}
	return nil
}

// Runs calls yield for each range of resident pages, in the order of their addresses.
func (p *Pages) Runs(yield func(Range)) {
	for i, n := uint64(0), (p.End-p.Start)/p.size; i < n; {
		if p.resident[i/64]>>(i%64)&1 == 0 {
			if i++; p.resident[(i-1)/64]>>((i-1)%64) == 0 {
				i = (i + 63) / 64 * 64 // the rest of the word is empty
			}
			continue
		}
		from := i
		for i < n && p.resident[i/64]>>(i%64)&1 != 0 {
			i++
		}
		yield(Range{p.Start + from*p.size, p.Start + i*p.size})
	}
}
