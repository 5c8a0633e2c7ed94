package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// processFlags select one process of a trace that may have several. Commands that draw an
// address space need it.
type processFlags struct {
	number int
}

func (p *processFlags) add(f *pflag.FlagSet) {
	f.Var(groups.Number(&p.number, 1, 1, groups.Unbounded), "process", "if the trace has several processes, use the `N`th, in order of appearance")
}

func (p *processFlags) reader(src trace.Reader) (*processReader, error) {
	if p.number < 1 {
		return nil, cli.Usagef("processes are counted from 1, not %d", p.number)
	}
	return &processReader{src: src, wanted: p.number, numbers: make(map[processKey]int)}, nil
}

// processReader passes on the records of one process. A file may have several traces, each
// with a header, as written by forked processes.
type processReader struct {
	src     trace.Reader
	wanted  int
	stream  int
	numbers map[processKey]int
	latest  processKey    // process that was counted last
	process trace.Process // selected process
	pid     int32
}

type processKey struct {
	stream int
	pid    int32
}

// ReadRecord implements trace.Reader.
func (p *processReader) ReadRecord(r *trace.Record) error {
	for {
		if err := p.src.ReadRecord(r); err != nil {
			return err
		}
		switch r.Kind {
		case trace.KindHeader:
			p.stream++
		case trace.KindCall, trace.KindHeapGrow, trace.KindExec, trace.KindProcess:
			if p.number(r.PID) != p.wanted {
				continue
			}
			if r.Kind == trace.KindProcess && p.process.Name == "" {
				p.process, p.pid = r.Clone().Process, r.PID
			}
		}
		return nil
	}
}

// number returns the number of a record's process. A record without a process id belongs to
// the process that was counted last in its stream.
func (p *processReader) number(pid int32) int {
	key := processKey{p.stream, pid}
	if pid == 0 && p.latest.stream == p.stream {
		key = p.latest
	}
	n, ok := p.numbers[key]
	if !ok {
		n = len(p.numbers) + 1
		p.numbers[key] = n
		p.latest = key
	}
	return n
}

// name returns the name of the process, or that of the file if it is unknown.
func (p *processReader) name(file string) string {
	name := filepath.Base(p.process.Name)
	switch {
	case p.process.Name == "":
		name = filepath.Base(file)
	case p.pid != 0:
		name += fmt.Sprintf(" (process %d)", p.pid)
	}
	return name
}

// check returns an error if there was no such process, and warns if there are others.
func (p *processReader) check(warn func(error)) error {
	switch n := len(p.numbers); {
	case n < p.wanted && p.wanted > 1:
		return cli.Usagef("--process %d: the trace has %d", p.wanted, n)
	case n > 1:
		warn(fmt.Errorf("the trace has %d processes, this is number %d; --process selects another", n, p.wanted))
	}
	return nil
}
