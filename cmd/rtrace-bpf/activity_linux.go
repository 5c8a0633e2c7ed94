package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	calls "rtrace-bpf/tracer/functions"
)

// activityConfig is what SWAP tells beside the calls of the allocator.
type activityConfig struct {
	sample   time.Duration
	switches bool
	syscalls []string
	files    bool
}

func (a *activityConfig) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&a.sample), "swap-sample", "in swap, tell every `PERIOD`, from 1ms to 100ms, where the threads are that run; 10ms is advised, and costs the process one percent")
	f.BoolVar(&a.switches, "swap-switches", false, "in swap, tell when threads leave a processor and when they run again; each switch costs the process some 0.4 microseconds, and all others on the machine 0.3")
	f.StringSliceVar(&a.syscalls, "swap-syscalls", nil, "in swap, tell the system calls of `CLASSES`, with commas between: "+activity.ClassNames()+" or all; each costs the process some 0.5 microseconds, and every system call of all others on the machine, of whatever class, 0.2")
	flags.OfferSeveral(f, "swap-syscalls", ",", append(strings.Split(activity.ClassNames(), ", "), "all")...)
	f.BoolVar(&a.files, "swap-files", false, "in swap, tell what other processes do with files that the process has open; every system call of all others on the machine costs some 0.3 microseconds for it, one that uses a descriptor of any file 0.7")
}

// options returns what is recorded.
func (a *activityConfig) options(c *config) (activity.Options, error) {
	classes, err := activity.ParseClasses(a.syscalls)
	if err != nil {
		return activity.Options{}, fmt.Errorf("--swap-syscalls: %w", err)
	}
	o := activity.Options{Sample: a.sample, Switches: a.switches, Calls: classes, Files: a.files}
	if err := o.Check(); err != nil {
		return o, fmt.Errorf("--swap-sample: %w", err)
	}
	if o.Any() && (c.format != "swap" || c.dotnet.on) {
		return o, errors.New("--swap-sample, --swap-switches, --swap-syscalls and --swap-files go with --format swap, and not with --dotnet")
	}
	return o, nil
}

// messages makes messages of SWAP of what a process does. It is for one tracer.
type messages struct {
	data []byte
	list []activity.Argument
	args []swap.Item
	// paths of files that are used, by their numbers.
	paths map[uint64]string

	values []calls.Argument

	mu            sync.Mutex        // of names: the end of a session may come while record runs
	names         map[uint64]string // of system calls, by their pc
	functionNames map[uint64]string // of functions that the user names, likewise
}

// syscalls returns the names of the system calls so far, by what their messages have
// as pc. The caller owns the map.
func (m *messages) syscalls() map[uint64]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.names)
}

// name notes the name of a system call.
func (m *messages) name(c *activity.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.names[c.Address]; ok {
		return
	}
	if m.names == nil {
		m.names = map[uint64]string{}
	}
	m.names[c.Address] = c.Name
}

// maxPaths is how many paths are kept at most.
const maxPaths = 1 << 16

// path returns the path of a file that is used, "N/A" if it is not known: with so many
// of them, or where the record that told it was lost.
func (m *messages) path(a *activity.Access) string {
	if a.Path == "" {
		if known := m.paths[a.File]; known != "" {
			return known
		}
		return "N/A"
	}
	if m.paths == nil || len(m.paths) >= maxPaths {
		m.paths = map[uint64]string{}
	}
	m.paths[a.File] = a.Path
	return a.Path
}

// record implements activity.Options.Record.
func (m *messages) record(e *activity.Event, r *trace.Record) bool {
	message := m.message(e, swap.Where{PID: uint32(r.PID), TID: uint32(r.TID), CPU: uint32(r.CPU - 1)})
	if message == nil {
		return false
	}
	if e.Kind == activity.Use || e.Kind == activity.Done {
		r.PID = int32(e.User)
	}
	m.data = swap.Place(r, message, m.data)
	return true
}

func (m *messages) message(e *activity.Event, where swap.Where) swap.Message {
	switch e.Kind {
	case activity.Sample:
		return &swap.Sample{Where: where, PC: e.PC}
	case activity.Off, activity.On:
		return &swap.Switch{Where: where, Runs: e.Kind == activity.On, PC: e.PC}
	case activity.Begin:
		m.name(e.Call)
		m.list, m.args = e.Arguments(m.list[:0]), m.args[:0]
		for _, a := range m.list {
			m.args = append(m.args, swap.Item(a))
		}
		return &swap.Syscall{Class: uint32(e.Call.Class), Call: swap.Call{Where: where, PC: e.Call.Address, Caller: e.PC, Args: m.args}}
	case activity.End:
		m.name(e.Call)
		result := swap.Item{Letter: 'x', Number: uint64(e.Result)}
		return &swap.Syscall{Class: uint32(e.Call.Class), Call: swap.Call{Where: where, PC: e.Call.Address, Caller: e.PC, Ended: true, Result: result}}
	case activity.Use:
		f := e.Access
		return &swap.FileUse{
			PID: e.User, TID: e.TID, FD: f.FD, Event: uint32(f.Event), Path: m.path(f),
			Opened: f.Opened, Lock: swap.Lock(f.Lock),
		}
	case activity.Done:
		return &swap.FileUse{PID: e.User, TID: e.TID, Ended: true, Result: e.Result}
	}
	return nil
}
