package activity

import (
	"fmt"
	"strings"
	"time"

	"rtrace-bpf/trace"
)

// Options says what is recorded. The zero value records nothing.
type Options struct {
	Sample   time.Duration // from one look at where the threads are to the next; 0 for none
	Switches bool          // when threads leave a processor and run again
	Calls    Classes       // system calls of these classes
	Files    bool          // what other processes do with files that it has open
	// Record makes a record of an event, and says whether there is one. Time,
	// process, thread and CPU are there already. What it gives must not hold on to
	// the event.
	Record func(e *Event, r *trace.Record) bool
}

// Limits of Options.Sample, those of SWAP.
const (
	MinSample = time.Millisecond
	MaxSample = 100 * time.Millisecond
)

// Any says whether anything is recorded.
func (o *Options) Any() bool { return o.Sample != 0 || o.Switches || o.Calls != 0 || o.Files }

// Check says what is wrong with the options.
func (o *Options) Check() error {
	if o.Sample != 0 && (o.Sample < MinSample || o.Sample > MaxSample) {
		return fmt.Errorf("%v between samples is not within %v to %v", o.Sample, MinSample, MaxSample)
	}
	return nil
}

// Classes is a set of classes of system calls. A class is one bit, with the number
// that SWAP has for it.
type Classes uint8

// The classes.
const (
	File       Classes = 0x01 // what takes the name of a file
	IPC        Classes = 0x02 // queues, semaphores and shared memory of System V
	Process    Classes = 0x04 // what begins, replaces, ends or waits for processes
	Signal     Classes = 0x08
	Network    Classes = 0x10
	Descriptor Classes = 0x20 // what takes or makes a file descriptor
)

var classNames = []struct {
	class Classes
	name  string
}{{File, "file"}, {IPC, "ipc"}, {Process, "process"}, {Signal, "signal"}, {Network, "network"}, {Descriptor, "descriptor"}}

// ClassNames lists the names that ParseClasses takes.
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

// first returns the class that stands first in the list, which a call of several has
// in a trace.
func (c Classes) first() Classes { return c & -c }
