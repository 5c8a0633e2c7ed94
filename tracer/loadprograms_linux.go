package tracer

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
)

// programs are those of a tracer on their way into the kernel.
type programs struct {
	specs   map[string]*ebpf.ProgramSpec
	maps    map[string]*ebpf.Map // that they name
	own     *ebpf.Collection     // those of maps that nobody else has; closed when the programs have them
	types   func() (*btf.Spec, error)
	options ebpf.ProgramOptions
}

// load loads all of them, side by side: the kernel checks each on the processor of who
// asks for it.
func (p *programs) load(to *object.ProbePrograms) error {
	types, err := p.types()
	if err != nil {
		return fmt.Errorf("load BPF programs: types of the kernel: %w", err)
	}
	p.options.KernelTypes = types // those of modules are not asked for
	loaded := &ebpf.Collection{Programs: map[string]*ebpf.Program{}}
	defer loaded.Close() // of what is left after an error
	var mu sync.Mutex    // of loaded
	var steps []func() error
	for name := range p.specs {
		steps = append(steps, func() error {
			program, err := p.one(name)
			mu.Lock()
			defer mu.Unlock()
			loaded.Programs[name] = program
			return err
		})
	}
	if err := Parallel(steps...); err != nil {
		return loadError(err)
	}
	return loaded.Assign(to)
}

// one loads the program of that name.
func (p *programs) one(name string) (*ebpf.Program, error) {
	spec := p.specs[name]
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		if !ins.IsLoadFromMap() || ins.Reference() == "" {
			continue
		}
		m := p.maps[ins.Reference()]
		if m == nil {
			return nil, fmt.Errorf("program %s: no map %s", name, ins.Reference())
		}
		if err := ins.AssociateMap(m); err != nil {
			return nil, fmt.Errorf("program %s: map %s: %w", name, ins.Reference(), err)
		}
	}
	program, err := ebpf.NewProgramWithOptions(spec, p.options)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return program, nil
}

func (p *programs) Close() error {
	p.own.Close()
	return nil
}

func loadError(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load BPF programs: %w: the kernel is locked down or a security module forbids it", host.ErrUnsupported)
	}
	return fmt.Errorf("load BPF programs: %w", host.Shortage(err))
}
