package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// system is what the traced process sees as its files. It stays so when the
// process has ended, and its container with it.
type system struct {
	root   *os.File // nil if it could not be opened
	mounts *os.File // the same
}

// openSystem opens the root folder of a process, and its mount namespace: what is
// mounted below the root goes with the last user of that.
func openSystem(pid int) *system {
	// An error shows again when the process is looked at.
	root, _ := os.OpenFile(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	mounts, _ := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return &system{root, mounts}
}

// Close lets go of the files.
func (s *system) Close() {
	for _, f := range []*os.File{s.root, s.mounts} {
		if f != nil {
			f.Close()
		}
	}
}

// open opens the file of a module, or else one of ours with the same path,
// which is looked at for being the same.
func (s *system) open(m trace.Module) (*symbol.File, error) {
	if s.root != nil {
		if f, err := symbol.OpenIn(fmt.Sprintf("/proc/self/fd/%d", s.root.Fd()), m.Path); err == nil {
			return f, nil
		}
	}
	return symbol.Open(m.Path)
}

// names resolves addresses of the traced process for the summary.
type names struct {
	resolver *resolve.Resolver
	pid      int32
}

func newNames(pid int, s *system) *names {
	return &names{pid: int32(pid), resolver: resolve.New(resolve.Options{Open: s.open, MaxDebug: maxDebug, MaxSymbols: maxSymbols})}
}

// observe takes in records about mappings.
func (n *names) observe(rec *trace.Record) { n.resolver.Observe(rec) }

// frame prints one frame.
func (n *names) frame(addr uint64) string { return n.resolver.Process(n.pid).Text(addr) }

// policy says which frame is the caller.
func (x *session) policy() resolve.Policy {
	p, _ := resolve.ParsePolicy(x.config.mtrc.callers) // checked with the command line
	return p
}

// maxDebug and maxSymbols bound the debugging information and the symbols that
// are held, in bytes: the machine that is traced has other uses for its memory,
// and hostile files may claim any amount.
const (
	maxDebug   = 512 << 20
	maxSymbols = 128 << 20
)

// named returns a reader that says of each call where it was made from.
func (x *session) named(from trace.Reader) trace.Reader {
	return resolve.NewCallers(from, resolve.New(resolve.Options{Open: x.system.open, MaxDebug: maxDebug, MaxSymbols: maxSymbols}), x.policy())
}

// withManaged returns a reader of the records of the tracer with those of the runtime
// among them.
func (x *session) withManaged(from trace.Reader) trace.Reader {
	managed, err := x.managed.file.Reader()
	return &merged{native: ahead{from: from}, managed: ahead{from: managed, err: err}}
}

// newOnline returns an online that writes to another writer.
func (x *session) newOnline(to trace.Writer) *online {
	r := resolve.New(resolve.Options{Open: x.system.open, MaxSymbols: maxSymbols, NoLines: true})
	return &online{resolve.NewCallers(nil, r, x.policy()), r, to}
}

// online says of each call which function made it, and passes it on at once. To
// tell the line, too, would hold up the rings for as long as it takes to read
// the debugging information of a large program.
type online struct {
	callers  *resolve.Callers
	resolver *resolve.Resolver
	to       trace.Writer
}

var _ trace.Writer = (*online)(nil)

// WriteRecord implements trace.Writer.
func (o *online) WriteRecord(r *trace.Record) error {
	if r.Kind != trace.KindCall {
		o.resolver.Observe(r)
		return o.to.WriteRecord(r)
	}
	r.Call.Caller = o.callers.Caller(r.PID, &r.Call.Stack)
	err := o.to.WriteRecord(r)
	r.Call.Caller = trace.Caller{}
	return err
}

// Flush implements trace.Writer.
func (o *online) Flush() error { return o.to.Flush() }

// Close implements trace.Writer.
func (o *online) Close() error { return o.to.Close() }
