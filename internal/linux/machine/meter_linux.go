package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"rtrace-bpf/internal/linux/proc"
)

// Meter reads the state of the machine again and again. One goroutine may use it.
type Meter struct {
	stat, memory *source
	frequency    []*source // of each processor; nil where it does not tell
	frequencies  []float32 // as they were read last
	slower       pace      // of frequencies
	cpus, were   []cpuTime
	loads        []float32
	target       *target
	others       *others
	devices      *devices
	last         int64 // when it was read before
}

// New returns a meter of the machine and a process of it. An error that is ErrGone says
// that the process has ended.
func New(pid int) (*Meter, error) {
	// The clocks of processes are known by the ids of the own namespace.
	if self, err := proc.Self(); err != nil {
		return nil, err
	} else if self != os.Getpid() {
		return nil, errors.New("/proc counts processes otherwise than this one: it is of another PID namespace")
	}
	m := &Meter{devices: newDevices()}
	err := m.open(pid)
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Meter) open(pid int) (err error) {
	if m.target, err = newTarget(pid); err != nil {
		return err
	}
	if m.others, err = newOthers(pid); err != nil {
		return err
	}
	if m.stat, err = openSource("/proc/stat", 8192); err != nil {
		return err
	}
	if m.memory, err = openSource("/proc/meminfo", 4096); err != nil {
		return err
	}
	text, err := os.ReadFile("/sys/devices/system/cpu/present")
	if err != nil {
		return err
	}
	n := parsePresent(text)
	if n == 0 {
		return fmt.Errorf("number of processors: %w", proc.ErrSyntax)
	}
	m.cpus, m.were = make([]cpuTime, n), make([]cpuTime, n)
	m.loads, m.frequencies, m.frequency = make([]float32, n), make([]float32, n), make([]*source, n)
	told := false
	for i := range m.frequency {
		m.frequency[i], _ = openSource("/sys/devices/system/cpu/cpu"+strconv.Itoa(i)+"/cpufreq/scaling_cur_freq", 64)
		told = told || m.frequency[i] != nil
	}
	if !told {
		// Then it does not change while we look, either.
		if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
			parseMHz(text, m.frequencies)
		}
	}
	return nil
}

// Processors returns how many elements the lists of a reading have that are about
// processors: those of the machine, also those that are off.
func (m *Meter) Processors() int { return len(m.loads) }

// Read reads the state as it is now. It reuses the lists of r. The error is ErrGone
// when the process has ended.
func (m *Meter) Read(r *Reading) error {
	text, err := m.stat.read()
	if err != nil {
		return fmt.Errorf("read /proc/stat: %w", err)
	}
	r.Time = clock()
	m.cpus, m.were = m.were, m.cpus
	running := max(parseCPUs(text, m.cpus), 1)
	for i := range m.loads {
		m.load(i)
	}
	r.Loads = append(r.Loads[:0], m.loads...)
	m.slower.run(r.Time, spent, func() {
		for i, s := range m.frequency {
			if s != nil {
				m.frequencies[i] = float32(s.number())
			}
		}
	})
	r.Frequencies = append(r.Frequencies[:0], m.frequencies...)
	if text, err = m.memory.once(); err != nil {
		return fmt.Errorf("read /proc/meminfo: %w", err)
	}
	r.MemoryUsed = parseUsed(text)
	capacity := float64(r.Time-m.last) * float64(running)
	if m.last == 0 {
		capacity = 0
	}
	m.last = r.Time
	if err := m.target.read(&r.Target, r.Time, running, capacity); err != nil {
		return err
	}
	r.Others = m.others.read(r.Others[:0], r.Time, running)
	m.devices.read(r)
	return nil
}

// load finds the load of a processor. Where no clock tick has passed it is that of
// before.
func (m *Meter) load(i int) {
	now, was := m.cpus[i], m.were[i]
	if now == (cpuTime{}) || was == (cpuTime{}) { // it is or was off, or this is the first reading
		m.loads[i] = 0
		return
	}
	busy, idle := between(was.busy, now.busy), between(was.idle, now.idle)
	if busy+idle > 0 {
		m.loads[i] = 100 * float32(busy) / float32(busy+idle)
	}
}

// Close closes all files.
func (m *Meter) Close() {
	for _, s := range append(m.frequency, m.stat, m.memory) {
		s.Close()
	}
	m.target.Close()
	m.others.Close()
	m.devices.Close()
}
