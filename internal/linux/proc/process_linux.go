package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// root is where the proc file system is mounted.
const root = "/proc"

// maxText bounds how much of a status, stat or cmdline file is read. The
// kernel lets arguments have 6 MiB (fs/exec.c: three quarters of _STK_LIM).
const maxText = 6 << 20

// file returns the path of a file about a process or thread.
func file(pid int, name string) string {
	return root + "/" + strconv.Itoa(pid) + "/" + name
}

// Exists says whether a process or thread has the id, alive or a zombie.
func Exists(pid int) bool {
	_, err := os.Stat(file(pid, ""))
	return err == nil
}

// explain turns the error of an access to /proc/PID into one of the package's
// sentinels where it says that the process is not or no longer there.
// missing is what it means that the process is there but has no such file.
func explain(pid int, what string, err, missing error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ESRCH), errors.Is(err, os.ErrNotExist):
		if Exists(pid) {
			err = missing
		} else {
			err = ErrNoProcess
		}
	}
	return fmt.Errorf("%s of process %d: %w", what, pid, err)
}

// text reads a whole small file about a process.
func text(pid int, name string) ([]byte, error) {
	f, err := os.Open(file(pid, name))
	if err != nil {
		return nil, explain(pid, name, err, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText))
	if errors.Is(err, syscall.ESRCH) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("%s of process %d: %w", name, pid, err)
	}
	return data, nil
}

// ReadStatus returns what /proc/PID/status tells. pid may be a thread's id.
func ReadStatus(pid int) (Status, error) {
	data, err := text(pid, "status")
	if err != nil {
		return Status{}, err
	}
	s, err := ParseStatus(data)
	if err != nil {
		return Status{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return s, nil
}

// ReadStat returns what /proc/PID/stat tells. pid may be a thread's id.
func ReadStat(pid int) (Stat, error) {
	data, err := text(pid, "stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(data)
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return s, nil
}

// IsKernelThread says whether pid is a thread of the kernel, which runs no
// program.
func IsKernelThread(pid int) (bool, error) {
	s, err := ReadStat(pid)
	return s.KernelThread(), err
}

// IsZombie says whether the process ended and only waits for its parent. A
// process whose main thread ended while others run is not a zombie, although
// the main thread's state says so.
func IsZombie(pid int) (bool, error) {
	s, err := ReadStat(pid)
	if err != nil || !s.State.Ended() {
		return false, err
	}
	_, alive := alive(pid)
	return !alive, nil
}

// alive returns the id of a thread of the process that has not ended.
func alive(pid int) (tid int, ok bool) {
	tids, err := ThreadIDs(pid)
	if err != nil {
		return 0, false
	}
	for _, tid := range tids {
		if s, err := ReadStat(tid); err == nil && !s.State.Ended() {
			return tid, true
		}
	}
	return 0, false
}

// withLeader calls try for pid and, if that finds no program because the main
// thread has ended while others still run, again for one of those. The files
// of an ended main thread are empty.
func withLeader(pid int, try func(pid int) error) error {
	err := try(pid)
	if !errors.Is(err, ErrNoProgram) {
		return err
	}
	if tid, ok := alive(pid); ok && tid != pid {
		return try(tid)
	}
	return err
}

// Exe returns the name of the file that the process runs, as seen from its own
// root, and whether that name was removed. The error is ErrNoProgram for
// kernel threads and zombies.
func Exe(pid int) (path string, deleted bool, err error) {
	err = withLeader(pid, func(pid int) error {
		path, err = os.Readlink(file(pid, "exe"))
		return explain(pid, "program", err, ErrNoProgram)
	})
	path, deleted = strings.CutSuffix(path, deletedSuffix)
	return path, deleted, err
}

// ProgramHead returns what the file that the process runs says of its machine.
// The error is ErrNoProgram for kernel threads and zombies.
func ProgramHead(pid int) (head Head, err error) {
	err = withLeader(pid, func(pid int) error {
		head, err = fileHead(file(pid, "exe"))
		if err != nil {
			return explain(pid, "program", err, ErrNoProgram)
		}
		return nil
	})
	return head, err
}

// fileHead reads the head of a file. A process may have given the name, so it may
// be that of a pipe, from which nothing must be taken, or of a terminal.
func fileHead(path string) (Head, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return Head{}, err
	} else if !info.Mode().IsRegular() {
		return Head{}, fmt.Errorf("%s is no file with a program: %w", path, ErrSyntax)
	}
	var head [HeadSize]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return Head{}, err
	}
	return ParseHead(head[:])
}

// StartedHead returns the head of the program that the process was started as.
// It is another one than that of the file that it runs where the kernel started
// an interpreter, as the emulators of binfmt_misc. head is of the latter.
func StartedHead(pid int, head Head) (Head, error) {
	auxv, err := text(pid, "auxv")
	if err != nil {
		return Head{}, err
	}
	at, ok := auxiliary(auxv, head.Bits/8, atExecFile)
	if !ok {
		return Head{}, fmt.Errorf("program of process %d: the kernel does not say what was started", pid)
	}
	memory, err := os.Open(file(pid, "mem"))
	if err != nil {
		return Head{}, explain(pid, "program", err, ErrNoProgram)
	}
	defer memory.Close()
	var name [4096]byte // PATH_MAX
	n, err := memory.ReadAt(name[:], int64(at))
	end := bytes.IndexByte(name[:n], 0)
	if end < 0 {
		return Head{}, fmt.Errorf("program of process %d: %w", pid, errors.Join(err, ErrSyntax))
	}
	from := "root"
	if name[0] != '/' {
		from = "cwd"
	}
	return fileHead(file(pid, from) + "/" + string(name[:end]))
}

// Entry returns the address at which the program that the process runs begins,
// which is in a mapping of its file. word is the size of its pointers in bytes.
func Entry(pid, word int) (uint64, error) {
	auxv, err := text(pid, "auxv")
	if err != nil {
		return 0, err
	}
	addr, ok := auxiliary(auxv, word, atEntry)
	if !ok {
		return 0, fmt.Errorf("program of process %d: the kernel does not say where it begins", pid)
	}
	return addr, nil
}

// Interpreter returns the address at which the file begins that the kernel has mapped
// for the program to be started by, as the dynamic loader; 0 if there is none, as for
// static programs. word is the size of the program's pointers in bytes.
func Interpreter(pid, word int) (uint64, error) {
	auxv, err := text(pid, "auxv")
	if err != nil {
		return 0, err
	}
	addr, _ := auxiliary(auxv, word, atBase)
	return addr, nil
}

// Personality returns the flags of the process's execution domain (personality(2)).
func Personality(pid int) (uint64, error) {
	data, err := text(pid, "personality")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(data)), 16, 64)
}

// Cmdline returns the command line of the process; it is empty for kernel
// threads and zombies. The process may have changed it.
func Cmdline(pid int) ([]string, error) {
	data, err := text(pid, "cmdline")
	if err != nil {
		return nil, err
	}
	return ParseCmdline(data), nil
}

// Thread is a thread of a process.
type Thread struct {
	TID  int
	Name string // at most 15 bytes, any but NUL
}

// Threads returns the threads that the process has now, ordered by id. Those
// that end meanwhile are left out.
func Threads(pid int) ([]Thread, error) {
	tids, err := ThreadIDs(pid)
	if err != nil {
		return nil, err
	}
	threads := make([]Thread, 0, len(tids))
	for _, tid := range tids {
		name, err := text(tid, "comm")
		switch {
		case errors.Is(err, ErrNoProcess), errors.Is(err, ErrGone):
			continue
		case err != nil:
			return nil, err
		}
		threads = append(threads, Thread{TID: tid, Name: strings.TrimSuffix(string(name), "\n")})
	}
	if len(threads) == 0 {
		return nil, fmt.Errorf("threads of process %d: %w", pid, ErrGone)
	}
	return threads, nil
}

// ThreadIDs returns the ids of the threads that the process has now, in ascending order.
// The list can lack a thread if another one ends while the kernel writes it.
func ThreadIDs(pid int) ([]int, error) {
	dir, err := os.Open(file(pid, "task"))
	if err != nil {
		return nil, explain(pid, "threads", err, err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		if errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrNotExist) {
			err = ErrGone
		}
		return nil, fmt.Errorf("threads of process %d: %w", pid, err)
	}
	tids := make([]int, 0, len(names))
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids, nil
}
