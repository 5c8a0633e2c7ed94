package resolve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"rtrace-bpf/internal/symbol"
)

// maxVDSO is the most bytes that a vdso may have. Real ones have a few pages.
const maxVDSO = 1 << 20

// openVDSO opens the code that the kernel maps into every process, from this process. If
// the build ID is the same, so is the code of the traced process. Systems without /proc
// have none: the error is errNoFile.
func openVDSO() (*symbol.File, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, errNoFile
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var start, end uint64
		if !strings.HasSuffix(lines.Text(), " "+vdsoName) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &start, &end); err != nil || end < start || end-start > maxVDSO {
			break
		}
		return readVDSO(int64(start), int64(end-start))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, errNoFile
}

// readVDSO reads an ELF file of size bytes that is mapped into this process at start.
func readVDSO(start, size int64) (f *symbol.File, err error) {
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mem.Close()) }()
	image := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(mem, start, size), image); err != nil {
		return nil, err
	}
	return symbol.New(bytes.NewReader(image), size)
}
