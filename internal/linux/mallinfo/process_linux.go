package mallinfo

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// ErrGone reports that the process has no memory any more, or has different memory because it
// executed another program.
var ErrGone = errors.New("the memory of the process is gone")

// State is the state of a heap as far as it is known.
type State struct {
	trace.HeapInfo
	// Unknown lists the fields that are 0 because they are unknown, by their names in jsonl.
	Unknown []string
	// Why is the reason, as a clause; empty if everything is known.
	Why string
}

// Process is a process whose heap is read.
type Process struct {
	pid    int
	memory *os.File
	reader reader
	known  bool // the library's variables were found
	glibc  bool // the process uses the GNU C library
}

// Open looks for the library in a process. The caller must close the result.
func Open(pid int) (*Process, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, fmt.Errorf("open the memory of process %d: %w", pid, err)
	}
	p := &Process{pid: pid, memory: memory}
	p.reader.memory = memory
	maps, err := proc.Maps(pid)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	exe, _, _ := proc.Exe(pid) // without it a static program is not recognised
	for _, m := range maps {
		if m.Perms&proc.Exec == 0 || !m.File() || !isLibrary(m.Path) && m.Path != exe {
			continue
		}
		if p.find(m); p.known {
			break
		}
	}
	return p, nil
}

// isLibrary reports whether a file has a name of the GNU C library.
func isLibrary(name string) bool {
	base := path.Base(name)
	return base == "libc.so.6" || strings.HasPrefix(base, "libc-2.") && strings.HasSuffix(base, ".so")
}

// Close closes the memory.
func (p *Process) Close() error { return p.memory.Close() }

// find looks for the library's variables in a mapped file.
func (p *Process) find(m proc.Map) {
	f, err := openMapped(p.pid, m)
	if err != nil {
		return // the file cannot be read
	}
	defer f.Close()
	p.reader.layout.word = uint64(f.Class() / 8)
	p.glibc = p.glibc || isLibrary(m.Path)
	found := f.Objects(arenaVariable, parameterVariable)
	arena, ok := found[arenaVariable]
	parameters, ok2 := found[parameterVariable]
	if !ok || !ok2 {
		return
	}
	p.glibc = true
	l, ok := findLayout(f, arena, parameters)
	if !ok {
		return
	}
	bias := symbol.Bias(f.Segments(), m.Start, m.End, m.Offset)
	p.reader.layout, p.known = l, true
	p.reader.arena, p.reader.parameters = arena.Addr+bias, parameters.Addr+bias
}

// openMapped opens the file of a mapping. Its debug file is looked for below the root of the
// process.
func openMapped(pid int, m proc.Map) (*symbol.File, error) {
	name := proc.Path(pid, m)
	root := fmt.Sprintf("/proc/%d/root", pid)
	if below, ok := strings.CutPrefix(name, root); ok {
		return symbol.OpenIn(root, below)
	}
	return symbol.Open(name)
}

// Known reports whether the library's variables were found, so that everything about the heap
// can be read.
func (p *Process) Known() bool { return p.known }

// Mapped returns the size in bytes of a live block's own mapping, if the library has made one
// for it.
func (p *Process) Mapped(block uint64) (size uint64, ok bool) {
	if !p.glibc || p.reader.layout.word == 0 {
		return 0, false
	}
	p.reader.deadline = time.Now().Add(time.Minute) // a single block takes no time
	return p.reader.mapped(block)
}

// Fields that come from lists of free blocks, and fields that need the variables.
var (
	fromLists     = []string{"ordblks", "smblks", "fsmblks", "uordblks", "fordblks"}
	fromVariables = append(fromLists, "keepcost")
)

// tries is how often the lists are read if they change in the meantime.
const tries = 5

// Read returns the current state. It takes a few microseconds, and one more for each free
// block; after the deadline it stops counting free blocks. The process continues to run, so
// Read repeats the reading a few times if the heap changes.
func (p *Process) Read(deadline time.Time) (State, error) {
	bounds, err := p.bounds()
	if err != nil {
		return State{}, err
	}
	if !p.known {
		s := State{Unknown: fromVariables, Why: "the C library has no symbols for its variables, or its version is not supported"}
		if !p.glibc {
			s.Unknown = append([]string{"hblks", "hblkhd"}, s.Unknown...)
			s.Why = "its C library is not the GNU C library"
		}
		s.Bottom, s.Top, s.Arena = bounds.start, bounds.end, bounds.end-bounds.start
		return s, nil
	}
	r := p.reader
	r.deadline = deadline
	var s State
	for range tries {
		s.HeapInfo, err = r.read()
		if !errors.Is(err, errChanged) || time.Now().After(deadline) {
			break
		}
	}
	switch {
	case err == nil:
	case s.HeapInfo != trace.HeapInfo{}:
		s.Unknown, s.Why = fromLists, err.Error()
	default:
		return State{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	s.Bottom, s.Top = bounds.start, bounds.end
	return s, nil
}

// extent is the addresses [start, end).
type extent struct{ start, end uint64 }

// bounds returns the memory below the program break, which is empty for a process without any.
func (p *Process) bounds() (extent, error) {
	maps, err := proc.Maps(p.pid)
	if err != nil {
		return extent{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	var e extent
	for _, m := range maps {
		if m.Path != "[heap]" {
			continue
		}
		if e.start == 0 {
			e.start = m.Start
		}
		e.end = m.End
	}
	return e, nil
}
