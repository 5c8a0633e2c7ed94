package programs

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

// loader loads the programs whose maps are made.
type loader struct {
	specs   map[string]*ebpf.ProgramSpec
	maps    map[string]*ebpf.Map // the maps that the programs use
	own     *ebpf.Collection     // maps that only the programs use; closed after loading
	types   func() (*btf.Spec, error)
	options ebpf.ProgramOptions
}

// load loads all programs in parallel: the kernel verifies each on the processor of the
// thread that loads it.
func (l *loader) load(to *object.ProbePrograms) error {
	types, err := l.types()
	if err != nil {
		return fmt.Errorf("load BPF programs: types of the kernel: %w", err)
	}
	l.options.KernelTypes = types // without the types of kernel modules
	loaded := &ebpf.Collection{Programs: map[string]*ebpf.Program{}}
	defer loaded.Close() // closes what is left after an error
	var mu sync.Mutex    // guards loaded
	var steps []func() error
	for name := range l.specs {
		steps = append(steps, func() error {
			program, err := l.one(name)
			mu.Lock()
			defer mu.Unlock()
			loaded.Programs[name] = program
			return err
		})
	}
	if err := atOnce(steps...); err != nil {
		return loadError(err)
	}
	return loaded.Assign(to)
}

// one loads the program with a name.
func (l *loader) one(name string) (*ebpf.Program, error) {
	spec := l.specs[name]
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		if !ins.IsLoadFromMap() || ins.Reference() == "" {
			continue
		}
		m := l.maps[ins.Reference()]
		if m == nil {
			return nil, fmt.Errorf("program %s: no map %s", name, ins.Reference())
		}
		if err := ins.AssociateMap(m); err != nil {
			return nil, fmt.Errorf("program %s: map %s: %w", name, ins.Reference(), err)
		}
	}
	program, err := ebpf.NewProgramWithOptions(spec, l.options)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return program, nil
}

func (l *loader) Close() error {
	l.own.Close()
	return nil
}

func loadError(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load BPF programs: %w: the kernel is locked down or a security module forbids it", host.ErrUnsupported)
	}
	return fmt.Errorf("load BPF programs: %w", host.Shortage(err))
}
