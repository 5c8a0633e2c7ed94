package functions

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
)

// Target is the traced process.
type Target struct {
	PID uint32 // in the tracer's PID namespace
	// NamespaceDev and NamespaceInode identify the tracer's PID namespace; they are 0 in the
	// initial one.
	NamespaceDev, NamespaceInode uint64
	Narrow                       bool // it is a 32-bit program on x86-64
}

// Mode is how the programs are attached, and what they must support.
type Mode struct {
	Multi   bool // attached with uprobe_multi links, otherwise with perf events
	Cookies bool // attached with cookies; otherwise each site has programs of its own
	// Measures is set if lengths of texts may be recorded.
	Measures bool
}

// Functions holds the programs for a process. Several goroutines may call its methods, except
// Grown and Close.
type Functions struct {
	options Options
	mode    Mode
	narrow  bool
	objects functionsObjects
	spec    *ebpf.CollectionSpec // for the copies

	mu     sync.Mutex
	sites  []*site
	copies []*ebpf.Program

	before Losses
	perCPU []uint64
}

// site is a probe.
type site struct {
	function *Function // for an entry
	value    *Value    // for a value
	narrow   bool
	stub     bool // the function returns through the kernel's stub: it has a return probe
	jumps    bool // it may end in a jump to another function
}

// Losses counts missing events.
type Losses struct {
	Full    uint64 // events that found no room in a ring
	Skipped uint64 // program runs that the kernel skipped
}

// ErrSites reports that there are too many probes.
var ErrSites = fmt.Errorf("more than %d probes: name fewer functions", maxSites)

const (
	maxSites    = 4096 // MAX_SITES in bpf/functions.h
	textCounted = 0x80 // TEXT_COUNTED there
	measureWide = 0x80 // MEASURE_WIDE there
)

// Load loads the programs, for CPUs with numbers up to last and rings of ringBytes bytes. log
// selects what the verifier logs (for tests).
func Load(t Target, o Options, m Mode, last, ringBytes int, log ebpf.LogLevel) (*Functions, error) {
	spec, err := loadFunctions()
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	settings := map[string]any{
		functionsVarCfgPid:          t.PID,
		functionsVarCfgPidNamespace: t.NamespaceInode != 0,
		functionsVarCfgPidnsDev:     t.NamespaceDev,
		functionsVarCfgPidnsIno:     t.NamespaceInode,
		functionsVarCfgNarrow:       t.Narrow,
		functionsVarCfgCookies:      m.Cookies,
		functionsVarCfgMeasures:     m.Measures,
	}
	for name, value := range settings {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	spec.Maps[functionsMapRings].MaxEntries = uint32(last + 1)
	spec.Maps[functionsMapRings].InnerMap.MaxEntries = uint32(ringBytes)
	if m.Multi {
		for _, p := range spec.Programs {
			p.AttachType = ebpf.AttachTraceUprobeMulti
		}
	}
	f := &Functions{options: o, mode: m, narrow: t.Narrow, spec: spec}
	loading := ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: log}}
	if err := spec.LoadAndAssign(&f.objects, &loading); err != nil {
		return nil, fmt.Errorf("load BPF programs: %w", err)
	}
	return f, nil
}

// Rings returns the map with the ring buffer of each CPU.
func (f *Functions) Rings() *ebpf.Map { return f.objects.Rings }

// Options returns what is recorded.
func (f *Functions) Options() *Options { return &f.options }

// Ways is how calls of a function end, for Entry.
type Ways struct {
	Stub  bool // through a return probe
	Jumps bool // perhaps in a jump to another function
}

// Probe is a program to attach with a cookie, which is its site's number. The program belongs to
// Functions.
type Probe struct {
	Program *ebpf.Program
	Cookie  uint64
}

// Entry makes the probe for entries of a function, back bytes after its first instruction. The
// instructions in between must not change registers or the stack.
func (f *Functions) Entry(fn *Function, back uint64, w Ways) (Probe, error) {
	s := &site{function: fn, narrow: f.narrow, stub: w.Stub, jumps: w.Jumps}
	rule := functionsCallSite{Back: uint32(back)}
	for i := range len(fn.Args) {
		switch fn.Args[i] {
		case measuredLetter:
			rule.Measure = rule.Words + 1
		case wideLetter:
			rule.Measure = (rule.Words + 1) | measureWide
		case 's', countedLetter:
			rule.Text[rule.Texts] = rule.Words + 1
			if fn.Args[i] == countedLetter {
				rule.Text[rule.Texts] |= textCounted
			}
			rule.Texts++
		}
		switch i + 1 {
		case fn.Out:
			rule.Out = rule.Words + 1
		case fn.Follow:
			f.follow(&rule, rule.Words+1, fn)
			rule.Beside = uint8(fn.Extra * int(wordBytes(f.narrow)))
		}
		rule.Words += uint8(wordsOf(fn.Args[i], f.narrow))
	}
	if fn.Module != 0 && rule.Texts > 0 && fn.Result != 0 {
		rule.Again = 1
	}
	if fn.Stack && fn.Result == 0 {
		rule.Stack = uint8(functionsCallStackCALL_STACK_HERE)
	}
	return f.add(s, &rule, functionsProgEntered)
}

// follow sets rule to follow fn's chain of pointers from a word.
func (f *Functions) follow(rule *functionsCallSite, from uint8, fn *Function) {
	rule.Follow, rule.Steps = from, uint8(len(fn.Steps))
	for i, n := range fn.Steps {
		rule.Add[i] = n * int64(wordBytes(f.narrow))
	}
}

// Leaving is what to record where functions return. Several functions may return at one place.
type Leaving struct {
	Stub  bool // through a return probe
	text  bool // the result may be a text
	stack bool
	wrote int // bytes
	via   int
	again bool // read texts that could not be read at the entry
	from  *Function
}

// Add adds what a function needs.
func (l *Leaving) Add(fn *Function) {
	l.text = l.text || fn.Result == 's'
	l.again = l.again || fn.Module != 0 && strings.ContainsRune(fn.Args, 's')
	l.stack = l.stack || fn.Stack
	l.wrote, l.via = max(l.wrote, fn.Wrote), max(l.via, fn.Via)
	if fn.Follow == FollowResult {
		l.from = fn
	}
}

// Return makes the probe for returns, at an instruction or as a return probe.
func (f *Functions) Return(l Leaving) (Probe, error) {
	rule := functionsCallSite{Size: uint32(l.wrote), Via: uint8(l.via)}
	if l.text {
		rule.Texts = 1
	}
	if l.from != nil {
		f.follow(&rule, 1, l.from)
	}
	if l.Stub {
		rule.Popped = 1
	}
	if l.again {
		rule.Again = 1
	}
	switch {
	case l.stack && l.Stub:
		rule.Stack = uint8(functionsCallStackCALL_STACK_AFTER)
	case l.stack:
		rule.Stack = uint8(functionsCallStackCALL_STACK_HERE)
	}
	return f.add(&site{narrow: f.narrow}, &rule, functionsProgLeft)
}

// Stackers sets the programs that record the stack of a call: here at an entry or a return
// instruction, and after where a return probe runs, after the return.
func (f *Functions) Stackers(here, after *ebpf.Program) error {
	for at, p := range map[functionsCallStack]*ebpf.Program{
		functionsCallStackCALL_STACK_HERE: here, functionsCallStackCALL_STACK_AFTER: after,
	} {
		if err := f.objects.Stackers.Put(uint32(at), p); err != nil {
			return fmt.Errorf("cannot record stacks of calls: %w", err)
		}
	}
	return nil
}

// Look makes the probe that reads a value.
func (f *Functions) Look(v *Value) (Probe, error) {
	rule := functionsCallSite{Size: v.Size, Steps: uint8(len(v.Adds))}
	rule.From, _ = register(v.Register, f.narrow)
	copy(rule.Add[:], v.Adds)
	return f.add(&site{value: v, narrow: f.narrow}, &rule, functionsProgLooked)
}

// add adds a site to the programs' map.
func (f *Functions) add(s *site, rule *functionsCallSite, program string) (Probe, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	number := uint32(len(f.sites))
	if number == maxSites {
		return Probe{}, ErrSites
	}
	if err := f.objects.Sites.Put(number, rule); err != nil {
		return Probe{}, fmt.Errorf("describe a probe: %w", err)
	}
	p, err := f.program(program, number)
	if err != nil {
		return Probe{}, err
	}
	f.sites = append(f.sites, s)
	return Probe{Program: p, Cookie: uint64(number)}, nil
}

// program returns the program for a site. Without cookies it is a copy that contains the site's
// number.
func (f *Functions) program(name string, number uint32) (*ebpf.Program, error) {
	if f.mode.Cookies {
		return map[string]*ebpf.Program{
			functionsProgEntered: f.objects.Entered, functionsProgLeft: f.objects.Left, functionsProgLooked: f.objects.Looked,
		}[name], nil
	}
	spec := f.spec.Copy()
	if err := spec.Variables[functionsVarCfgSite].Set(number); err != nil {
		return nil, fmt.Errorf("set %s: %w", functionsVarCfgSite, err)
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		functionsMapRings: f.objects.Rings, functionsMapSites: f.objects.Sites,
		functionsMapLosses: f.objects.Losses, functionsMapSwitches: f.objects.Switches,
		functionsMapStackers: f.objects.Stackers, functionsMapOuts: f.objects.Outs, functionsMapUnreads: f.objects.Unreads,
		functionsMapUnseen: f.objects.Unseen,
	}})
	if err != nil {
		return nil, fmt.Errorf("load BPF program: %w", err)
	}
	p := c.DetachProgram(name)
	c.Close()
	f.copies = append(f.copies, p)
	return p, nil
}

func (f *Functions) site(number int) *site {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number >= len(f.sites) {
		return nil
	}
	return f.sites[number]
}

// Enable starts recording. Disable stops it for good.
func (f *Functions) Enable() error { return f.set(1) }

// Disable makes the programs return at once. Any goroutine may call it.
func (f *Functions) Disable() error { return f.set(0) }

func (f *Functions) set(on uint32) error {
	if err := f.objects.Switches.Put(uint32(0), on); err != nil {
		return fmt.Errorf("switch the programs on or off: %w", err)
	}
	return nil
}

// Grown returns the losses since the last call.
func (f *Functions) Grown() (Losses, error) {
	var now Losses
	if err := f.objects.Losses.Lookup(uint32(functionsCallLossCALL_RING_FULL), &f.perCPU); err != nil {
		return now, fmt.Errorf("read loss counters: %w", err)
	}
	for _, n := range f.perCPU {
		now.Full += n
	}
	f.mu.Lock()
	programs := append([]*ebpf.Program{f.objects.Entered, f.objects.Left, f.objects.Looked}, f.copies...)
	f.mu.Unlock()
	for _, p := range programs {
		stats, err := p.Stats()
		if err != nil {
			return now, fmt.Errorf("read program statistics: %w", err)
		}
		now.Skipped += stats.RecursionMisses
	}
	grown := Losses{now.Full - f.before.Full, now.Skipped - f.before.Skipped}
	f.before = now
	return grown, nil
}

// Close frees the programs. Programs that are attached stay until their links are closed, but
// find themselves disabled.
func (f *Functions) Close() error {
	var all []error
	for _, p := range f.copies {
		all = append(all, p.Close())
	}
	f.copies = nil
	return errors.Join(append(all, f.objects.Close())...)
}
