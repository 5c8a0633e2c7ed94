package resolve

import (
	"bytes"
	"errors"
	"io"
	"os"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// maxVDSO is the most bytes that a vdso may have. Real ones have a few pages.
const maxVDSO = 1 << 20

// openVDSO opens the code that the kernel maps into every process, from this process. If
// the build ID is the same, so is the code of the traced process.
func openVDSO() (*symbol.File, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, errNoFile
	}
	defer maps.Close()
	list, err := proc.ParseMaps(maps)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.Path == vdsoName && m.End-m.Start <= maxVDSO {
			return readVDSO(m)
		}
	}
	return nil, errNoFile
}

func readVDSO(m proc.Map) (f *symbol.File, err error) {
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mem.Close()) }()
	image := make([]byte, m.End-m.Start)
	if _, err := io.ReadFull(io.NewSectionReader(mem, int64(m.Start), int64(len(image))), image); err != nil {
		return nil, err
	}
	return symbol.New(bytes.NewReader(image), int64(len(image)))
}
