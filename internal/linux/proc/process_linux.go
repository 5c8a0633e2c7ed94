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

// maxText is the most bytes of a status, stat or cmdline file that are read. The kernel allows
// 6 MiB of arguments (fs/exec.c: three quarters of _STK_LIM).
const maxText = 6 << 20

// file returns the path of a file about a process or thread.
func file(pid int, name string) string {
	return root + "/" + strconv.Itoa(pid) + "/" + name
}

// Exists reports whether a process or thread has the ID, alive or a zombie.
func Exists(pid int) bool {
	_, err := os.Stat(file(pid, ""))
	return err == nil
}

// explain converts the error of an access to /proc/PID to one of the package's errors if it
// means that the process does not exist or has ended. missing is the error for a process that
// exists but lacks the file.
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

// ReadStatus returns the contents of /proc/PID/status. pid may be a thread's ID.
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

// ReadStat returns the contents of /proc/PID/stat. pid may be a thread's ID.
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

// IsKernelThread reports whether pid is a thread of the kernel, which runs no program.
func IsKernelThread(pid int) (bool, error) {
	s, err := ReadStat(pid)
	return s.KernelThread(), err
}

// IsZombie reports whether the process has ended and its parent has not waited for it. A
// process whose main thread has ended while others run is not a zombie, although the main
// thread's state is.
func IsZombie(pid int) (bool, error) {
	s, err := ReadStat(pid)
	if err != nil || !s.State.Ended() {
		return false, err
	}
	_, alive := alive(pid)
	return !alive, nil
}

// alive returns the ID of a thread of the process that has not ended.
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

// withLeader calls try for pid. If that finds no program because the main thread has ended
// while others still run, it calls try again for one of those: the files of an ended main
// thread are empty.
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

// Exe returns the name of the file that the process runs, as seen from its own root, and
// whether that name was removed. The error is ErrNoProgram for kernel threads and zombies.
func Exe(pid int) (path string, deleted bool, err error) {
	err = withLeader(pid, func(pid int) error {
		path, err = os.Readlink(file(pid, "exe"))
		return explain(pid, "program", err, ErrNoProgram)
	})
	path, deleted = strings.CutSuffix(path, deletedSuffix)
	return path, deleted, err
}

// ProgramHead returns the head of the file that the process runs. The error is ErrNoProgram for
// kernel threads and zombies.
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

// fileHead reads the head of a file. A process may have chosen the name, so the file may be a
// pipe, from which nothing must be read, or a terminal.
func fileHead(path string) (Head, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return Head{}, err
	} else if !info.Mode().IsRegular() {
		return Head{}, fmt.Errorf("%s is not a program file: %w", path, ErrSyntax)
	}
	var head [HeadSize]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return Head{}, err
	}
	return ParseHead(head[:])
}

// StartedHead returns the head of the program that the process was started as. It differs from
// the file that the process runs if the kernel started an interpreter, such as an emulator of
// binfmt_misc. head is the head of that file.
func StartedHead(pid int, head Head) (Head, error) {
	auxv, err := text(pid, "auxv")
	if err != nil {
		return Head{}, err
	}
	at, ok := auxiliary(auxv, head.Bits/8, atExecFile)
	if !ok {
		return Head{}, fmt.Errorf("program of process %d: the kernel does not provide its name", pid)
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

// Entry returns the entry point of the program that the process runs, which is in a mapping of
// its file. word is the size of its pointers in bytes.
func Entry(pid, word int) (uint64, error) {
	auxv, err := text(pid, "auxv")
	if err != nil {
		return 0, err
	}
	addr, ok := auxiliary(auxv, word, atEntry)
	if !ok {
		return 0, fmt.Errorf("program of process %d: the kernel does not provide its entry point", pid)
	}
	return addr, nil
}

// Interpreter returns the address at which the kernel has mapped the program's interpreter,
// usually the dynamic loader; 0 if there is none, as for static programs. word is the size of
// the program's pointers in bytes.
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

// Threads returns the threads that the process has now, ordered by ID. It leaves out threads
// that end in the meantime.
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

// ThreadIDs returns the IDs of the threads that the process has now, in ascending order. A
// thread may be missing if another one ends while the kernel writes the list.
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
