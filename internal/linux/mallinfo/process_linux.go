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

// ErrGone says that the process has no memory any more, or other memory since it has
// become another program.
var ErrGone = errors.New("the memory of the process is gone")

// State is what is known of a heap.
type State struct {
	trace.HeapInfo
	// Unknown are the fields that are 0 because they are not known, as jsonl calls them.
	Unknown []string
	// Why says why, in a clause; empty if all is known.
	Why string
}

// Process is a process whose heap is looked at.
type Process struct {
	pid    int
	memory *os.File
	reader reader
	known  bool // where the library's variables are
	glibc  bool // it uses that library
}

// Open looks for the library in a process. Close comes last.
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

// isLibrary says whether a file is called like the GNU C library.
func isLibrary(name string) bool {
	base := path.Base(name)
	return base == "libc.so.6" || strings.HasPrefix(base, "libc-2.") && strings.HasSuffix(base, ".so")
}

// Close lets go of the memory.
func (p *Process) Close() error { return p.memory.Close() }

// find looks for the library's variables in a file that is mapped.
func (p *Process) find(m proc.Map) {
	f, err := openMapped(p.pid, m)
	if err != nil {
		return // it is not known what is in it
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

// openMapped opens the file of a mapping. Its debug file is looked for where the process
// would look.
func openMapped(pid int, m proc.Map) (*symbol.File, error) {
	name := proc.Path(pid, m)
	root := fmt.Sprintf("/proc/%d/root", pid)
	if below, ok := strings.CutPrefix(name, root); ok {
		return symbol.OpenIn(root, below)
	}
	return symbol.Open(name)
}

// Known says whether all is known of the heap.
func (p *Process) Known() bool { return p.known }

// Mapped returns how many bytes the mapping of a live block has, if the library has made
// one for it alone.
func (p *Process) Mapped(block uint64) (size uint64, ok bool) {
	if !p.glibc || p.reader.layout.word == 0 {
		return 0, false
	}
	p.reader.deadline = time.Now().Add(time.Minute) // one block takes no time
	return p.reader.mapped(block)
}

// Fields that lists of free blocks tell, and those that all need the variables.
var (
	fromLists     = []string{"ordblks", "smblks", "fsmblks", "uordblks", "fordblks"}
	fromVariables = append(fromLists, "keepcost")
)

// tries is how often the lists are read when they change meanwhile.
const tries = 5

// Read returns the state now. It takes some microseconds, and one for each free block;
// behind the deadline those are given up. The process runs meanwhile: what changes is read
// again, at most some times.
func (p *Process) Read(deadline time.Time) (State, error) {
	bounds, err := p.bounds()
	if err != nil {
		return State{}, err
	}
	if !p.known {
		s := State{Unknown: fromVariables, Why: "there are no symbols of the C library's variables, or they are not of a version that is known"}
		if !p.glibc {
			s.Unknown = append([]string{"hblks", "hblkhd"}, s.Unknown...)
			s.Why = "its C library is not that of GNU"
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

// extent is the addresses from start to before end.
type extent struct{ start, end uint64 }

// bounds returns those of the memory that the program break has moved over, none for a
// process without.
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
