package proc

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// State is the state of a thread, as the letter that the kernel prints.
type State byte

// The states that matter to a tracer. Other states (running, sleeping, stopped …) keep their
// letters.
const (
	StateZombie State = 'Z' // ended, its parent has not waited for it yet
	StateDead   State = 'X' // ended, about to disappear
)

// Ended reports whether the thread has ended.
func (s State) Ended() bool { return s == StateZombie || s == StateDead }

// The modes of seccomp(2), as Status.Seccomp gives them.
const (
	SeccompUnknown  = -1 // the kernel does not report it
	SeccompDisabled = 0
	SeccompStrict   = 1
	SeccompFilter   = 2
)

// Status is the contents of /proc/PID/status of a process or thread.
type Status struct {
	Name      string // of the main thread, or of the thread that was read
	State     State
	PID       int // of the thread that was read
	TGID      int // of its process
	PPID      int
	TracerPID int // the process that traces it with ptrace, 0 if none
	Threads   int
	UID       [4]uint32 // real, effective, saved, file system
	CapEff    uint64    // effective capabilities, a bit mask
	Pending   uint64    // signals pending for the thread alone, a bit mask starting with signal 1
	Seccomp   int       // mode, see SeccompDisabled and its neighbours
	// NSPID holds its ID in each PID namespace, the tracer's own first and its innermost last;
	// empty if the kernel does not report it.
	NSPID []int
	// ThreadFeatures are the processor features that are on for the thread, such as "shstk" and
	// "wrss" (x86 only).
	ThreadFeatures []string
}

// ShadowStack reports whether return addresses are checked against a shadow stack.
func (s *Status) ShadowStack() bool {
	return slices.Contains(s.ThreadFeatures, "shstk")
}

// ParseStatus parses the text of /proc/PID/status. It skips unknown lines; Name, State, Tgid
// and Pid must be present.
func ParseStatus(text []byte) (Status, error) {
	s := Status{Seccomp: SeccompUnknown}
	seen := 0
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		need, err := s.set(string(key), string(bytes.TrimPrefix(value, []byte("\t"))))
		if err != nil {
			return Status{}, fmt.Errorf("status field %s: %w", key, err)
		}
		if need {
			seen++
		}
	}
	if seen < 4 {
		return Status{}, fmt.Errorf("status without name, state, process or thread id: %w", ErrSyntax)
	}
	return s, nil
}

// set stores one field and reports whether it is a mandatory one.
func (s *Status) set(key, value string) (need bool, err error) {
	switch key {
	case "Name":
		s.Name = unescape(value)
		return true, nil
	case "State":
		if value == "" {
			return false, ErrSyntax
		}
		s.State = State(value[0])
		return true, nil
	case "Tgid":
		return true, number(value, &s.TGID)
	case "Pid":
		return true, number(value, &s.PID)
	case "PPid":
		return false, number(value, &s.PPID)
	case "TracerPid":
		return false, number(value, &s.TracerPID)
	case "Threads":
		return false, number(value, &s.Threads)
	case "Seccomp":
		return false, number(value, &s.Seccomp)
	case "Uid":
		return false, s.uids(value)
	case "SigPnd":
		s.Pending, err = strconv.ParseUint(value, 16, 64)
		return false, err
	case "CapEff":
		s.CapEff, err = strconv.ParseUint(value, 16, 64)
		return false, syntax(err)
	case "NSpid":
		return false, s.nsPIDs(value)
	case "x86_Thread_features":
		s.ThreadFeatures = strings.Fields(value)
	}
	return false, nil
}

func (s *Status) uids(value string) error {
	words := strings.Fields(value)
	if len(words) != len(s.UID) {
		return ErrSyntax
	}
	for i, w := range words {
		v, err := strconv.ParseUint(w, 10, 32)
		if err != nil {
			return syntax(err)
		}
		s.UID[i] = uint32(v)
	}
	return nil
}

func (s *Status) nsPIDs(value string) error {
	s.NSPID = nil
	for w := range strings.FieldsSeq(value) {
		var v int
		if err := number(w, &v); err != nil {
			return err
		}
		s.NSPID = append(s.NSPID, v)
	}
	return nil
}

func number(text string, to *int) error {
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return syntax(err)
	}
	*to = int(v)
	return nil
}

func syntax(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrSyntax, err)
}

// unescape reverses the spelling of names in the status file, where a line feed is \n and a
// backslash \\.
func unescape(name string) string {
	if !strings.Contains(name, `\`) {
		return name
	}
	return strings.NewReplacer(`\n`, "\n", `\\`, `\`).Replace(name)
}

// Flags of a thread, PF_ in the kernel's include/linux/sched.h.
const (
	flagExiting      = 0x00000004 // PF_EXITING
	flagSignaled     = 0x00000400 // PF_SIGNALED
	flagKernelThread = 0x00200000 // PF_KTHREAD: a kernel thread
)

// Stat is the part of /proc/PID/stat that Status lacks.
type Stat struct {
	PID   int
	Name  string
	State State
	PPID  int
	Flags uint64 // PF_ bits of the kernel
	// Start is when the thread began, in clock ticks after boot. Together with PID it
	// identifies a process, because IDs are reused.
	Start uint64
}

// Exiting reports whether the thread is exiting or has ended.
func (s *Stat) Exiting() bool { return s.Flags&flagExiting != 0 }

// Killed reports whether a signal ended the thread. The end of its process and an exec also
// kill the other threads.
func (s *Stat) Killed() bool { return s.Flags&flagSignaled != 0 }

// KernelThread reports whether it is a kernel thread.
func (s *Stat) KernelThread() bool { return s.Flags&flagKernelThread != 0 }

// Positions of fields in /proc/PID/stat, counted from 1 (proc(5)). The name is field 2 and may
// contain spaces and parentheses, so fields are counted from its end.
const (
	statState = 3
	statPPID  = 4
	statFlags = 9
	statStart = 22
)

// ParseStat parses the text of /proc/PID/stat.
func ParseStat(text []byte) (Stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("stat without a name: %w", ErrSyntax)
	}
	s := Stat{Name: string(text[open+1 : end])}
	if err := number(string(bytes.TrimSpace(text[:open])), &s.PID); err != nil {
		return Stat{}, fmt.Errorf("stat process id: %w", err)
	}
	words := strings.Fields(string(text[end+1:]))
	if len(words) <= statStart-statState {
		return Stat{}, fmt.Errorf("stat with %d fields: %w", len(words)+statState-1, ErrSyntax)
	}
	s.State = State(words[0][0])
	err := number(words[statPPID-statState], &s.PPID)
	if err != nil {
		return Stat{}, fmt.Errorf("stat parent: %w", err)
	}
	if s.Flags, err = strconv.ParseUint(words[statFlags-statState], 10, 64); err != nil {
		return Stat{}, fmt.Errorf("stat flags: %w", syntax(err))
	}
	if s.Start, err = strconv.ParseUint(words[statStart-statState], 10, 64); err != nil {
		return Stat{}, fmt.Errorf("stat start time: %w", syntax(err))
	}
	return s, nil
}

// ParseCmdline splits the text of /proc/PID/cmdline into arguments. If a process has replaced
// its arguments with a title, the title is the only one.
func ParseCmdline(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
