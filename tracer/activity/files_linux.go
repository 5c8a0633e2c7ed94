package activity

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// fileWatch observes what other processes do with files that the traced process has open.
type fileWatch struct {
	objects filesObjects
}

// fileRules holds what system calls do to files, by name. It includes all calls that make a
// descriptor of the traced process: from then on its file is watched.
var fileRules = map[string]filesFileRule{
	"read":            {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1},
	"pread64":         {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1},
	"readv":           {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1},
	"preadv":          {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1},
	"preadv2":         {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1},
	"write":           {Kind: uint8(filesFileKindFILE_MOVES), Writes: 1},
	"pwrite64":        {Kind: uint8(filesFileKindFILE_MOVES), Writes: 1},
	"writev":          {Kind: uint8(filesFileKindFILE_MOVES), Writes: 1},
	"pwritev":         {Kind: uint8(filesFileKindFILE_MOVES), Writes: 1},
	"pwritev2":        {Kind: uint8(filesFileKindFILE_MOVES), Writes: 1},
	"sendfile":        {Kind: uint8(filesFileKindFILE_MOVES), Reads: 2, Writes: 1},
	"sendfile64":      {Kind: uint8(filesFileKindFILE_MOVES), Reads: 2, Writes: 1},
	"splice":          {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1, Writes: 3},
	"copy_file_range": {Kind: uint8(filesFileKindFILE_MOVES), Reads: 1, Writes: 3},
	"close":           {Kind: uint8(filesFileKindFILE_CLOSE)},
	"flock":           {Kind: uint8(filesFileKindFILE_FLOCK)},
	"fcntl":           {Kind: uint8(filesFileKindFILE_FCNTL)},
	"fcntl64":         {Kind: uint8(filesFileKindFILE_FCNTL)},
	"open":            {Kind: uint8(filesFileKindFILE_OPEN), Text: 1},
	"creat":           {Kind: uint8(filesFileKindFILE_OPEN), Text: 1},
	"openat":          {Kind: uint8(filesFileKindFILE_OPEN), Text: 2},
	"openat2":         {Kind: uint8(filesFileKindFILE_OPEN), Text: 2},

	"dup":               {Kind: uint8(filesFileKindFILE_GAIN)},
	"dup2":              {Kind: uint8(filesFileKindFILE_GAIN)},
	"dup3":              {Kind: uint8(filesFileKindFILE_GAIN)},
	"memfd_create":      {Kind: uint8(filesFileKindFILE_GAIN)},
	"open_by_handle_at": {Kind: uint8(filesFileKindFILE_GAIN)},
	"pidfd_getfd":       {Kind: uint8(filesFileKindFILE_GAIN)},
	"execve":            {Kind: uint8(filesFileKindFILE_EXEC)},
	"execveat":          {Kind: uint8(filesFileKindFILE_EXEC)},
}

// putFileRules calls put for each system call that does something to files.
func putFileRules(put func(index uint32, rule filesFileRule) error) error {
	for abi, column := range columns() {
		if column < 0 {
			continue
		}
		for i := range systemCalls {
			rule, ok := fileRules[systemCalls[i].name]
			number := int(systemCalls[i].numbers[column])
			if !ok || number < 0 {
				continue
			}
			if err := put(uint32(abi*callNumbers+number), rule); err != nil {
				return err
			}
		}
	}
	return nil
}

// openFiles loads the programs. They share the rings and the loss counters of activity.
func openFiles(t Target, with *activityObjects, log ebpf.LogLevel) (*fileWatch, error) {
	spec, err := loadFiles()
	if err != nil {
		return nil, err
	}
	if err := t.set(spec); err != nil {
		return nil, err
	}
	for name, m := range map[string]*ebpf.Map{filesMapRings: with.Rings, filesMapLosses: with.Losses} {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	w := &fileWatch{}
	loading := ebpf.CollectionOptions{
		Programs:        ebpf.ProgramOptions{LogLevel: log},
		MapReplacements: map[string]*ebpf.Map{filesMapRings: with.Rings, filesMapLosses: with.Losses},
	}
	if err := spec.LoadAndAssign(&w.objects, &loading); err != nil {
		return nil, fmt.Errorf("load BPF programs for files: %w", err)
	}
	err = putFileRules(func(index uint32, rule filesFileRule) error { return w.objects.FileRules.Put(index, rule) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set the system calls that use files: %w", err), w.objects.Close())
	}
	return w, nil
}

// seed adds the files that the process has open already. The programs must be attached before, so
// that they see what the process opens in the meantime.
func (w *fileWatch) seed() error {
	iter, err := link.AttachIter(link.IterOptions{Program: w.objects.OpenedBefore})
	if err != nil {
		return fmt.Errorf("read open files: %w", err)
	}
	defer func() { _ = iter.Close() }() // it was read to its end
	files, err := iter.Open()
	if err != nil {
		return fmt.Errorf("read open files: %w", err)
	}
	defer files.Close()
	if _, err := io.Copy(io.Discard, files); err != nil {
		return fmt.Errorf("read open files: %w", err)
	}
	return nil
}

// programs returns the programs that system calls run.
func (w *fileWatch) programs() []*ebpf.Program {
	return []*ebpf.Program{w.objects.UseBegins, w.objects.UseEnds}
}
