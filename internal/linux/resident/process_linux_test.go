package resident

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"

	"rtrace-bpf/internal/linux/proc"
)

// The pages of a mapping of our own: those that were written are resident, those that were only
// read are the page of zeros. A kernel without such a page (pvm_no_zero_page) makes pages for them.
func TestOwnPages(t *testing.T) {
	page := os.Getpagesize()
	b, err := syscall.Mmap(-1, 0, 64*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(b); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Madvise(b, syscall.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, syscall.EINVAL) {
		t.Fatal(err)
	}
	for i := range 10 {
		b[2*i*page] = 1
	}
	for i := range 5 {
		runtime.KeepAlive(bytes.IndexByte(b[(40+i)*page:(41+i)*page], 1))
	}
	pid, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Mappings(pid)
	if err != nil {
		t.Fatal(err)
	}
	pagemap, err := OpenPagemap(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer pagemap.Close()
	found := false
	for _, m := range all {
		if m.End-m.Start != uint64(64*page) || m.Resident != uint64(10*page) && m.Resident != uint64(15*page) {
			continue
		}
		p, err := pagemap.Read(&m)
		if err != nil {
			t.Fatal(err)
		}
		found = true
		if got := p.Resident(m.Start, m.End); got != m.Resident {
			t.Errorf("%d bytes are resident by their pages, %d by smaps", got, m.Resident)
		}
		for i := range 64 {
			want := i < 20 && i%2 == 0 || i >= 40 && i < 45
			if got := p.Readable(m.Start + uint64(i*page)); got != want {
				t.Errorf("page %d can be read: %t, want %t", i, got, want)
			}
		}
	}
	if !found {
		t.Error("no mapping has 10 or 15 of 64 pages")
	}
}

func TestNoProcess(t *testing.T) {
	const none = 1<<22 + 1 // more than the largest ID
	if _, err := Mappings(none); !errors.Is(err, proc.ErrNoProcess) {
		t.Errorf("%v, want %v", err, proc.ErrNoProcess)
	}
	if _, err := Total(none); !errors.Is(err, proc.ErrNoProcess) {
		t.Errorf("%v, want %v", err, proc.ErrNoProcess)
	}
}
