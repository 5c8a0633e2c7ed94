package activity

import (
	"fmt"
	"strings"
	"time"

	"rtrace-bpf/trace"
)

// Options selects what is recorded. The zero value records nothing.
type Options struct {
	Sample   time.Duration // time between two samples of where the threads are; 0 for none
	Switches bool          // record when threads leave a processor and run again
	Calls    Classes       // record system calls of these classes
	Files    bool          // record what other processes do with files that the process has open
	// Record fills in a record for an event, and reports whether there is one. Time, process,
	// thread and CPU are set before. The record must not refer to the event's memory.
	Record func(e *Event, r *trace.Record) bool
}

// Limits of Options.Sample, as in SWAP.
const (
	MinSample = time.Millisecond
	MaxSample = 100 * time.Millisecond
)

// Any reports whether anything is recorded.
func (o *Options) Any() bool { return o.Sample != 0 || o.Switches || o.Calls != 0 || o.Files }

// Check returns an error if the options are invalid.
func (o *Options) Check() error {
	if o.Sample != 0 && (o.Sample < MinSample || o.Sample > MaxSample) {
		return fmt.Errorf("the time between samples, %v, is not within %v to %v", o.Sample, MinSample, MaxSample)
	}
	return nil
}

// Classes is a set of classes of system calls. A class is one bit, with the number that SWAP has
// for it.
type Classes uint8

// The classes.
const (
	File       Classes = 0x01 // calls that take the name of a file
	IPC        Classes = 0x02 // queues, semaphores and shared memory of System V
	Process    Classes = 0x04 // calls that begin, replace, end or wait for processes
	Signal     Classes = 0x08
	Network    Classes = 0x10
	Descriptor Classes = 0x20 // calls that take or make a file descriptor
)

var classNames = []struct {
	class Classes
	name  string
}{{File, "file"}, {IPC, "ipc"}, {Process, "process"}, {Signal, "signal"}, {Network, "network"}, {Descriptor, "descriptor"}}

// ClassNames lists the names that ParseClasses accepts.
func ClassNames() string {
	var all []string
	for _, c := range classNames {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

// ParseClasses returns the classes with the given names; "all" is all of them.
func ParseClasses(names []string) (Classes, error) {
	var set Classes
next:
	for _, name := range names {
		for _, c := range classNames {
			if c.name == name || name == "all" {
				set |= c.class
				if c.name == name {
					continue next
				}
			}
		}
		if name != "all" {
			return 0, fmt.Errorf("unknown class %q of system calls (known: %s, all)", name, ClassNames())
		}
	}
	return set, nil
}

// first returns the first class in the list that c contains. In a trace, a call of several
// classes has this one.
func (c Classes) first() Classes { return c & -c }
