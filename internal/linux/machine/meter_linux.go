package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"rtrace-bpf/internal/linux/proc"
)

// Meter reads the state of the machine repeatedly. Only one goroutine may use it.
type Meter struct {
	stat, memory *source
	frequency    []*source // of each processor; nil if unknown
	frequencies  []float32 // from the last reading
	slower       pace      // of frequencies
	cpus, were   []cpuTime
	loads        []float32
	target       *target
	others       *others
	devices      *devices
	last         int64 // time of the last reading
}

// New returns a meter of the machine and of a process. The error is ErrGone if the process has
// ended.
func New(pid int) (*Meter, error) {
	// The CPU clocks of processes need IDs of our own PID namespace.
	if self, err := proc.Self(); err != nil {
		return nil, err
	} else if self != os.Getpid() {
		return nil, errors.New("/proc belongs to a different PID namespace than this program: mount the /proc of this namespace")
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
	reported := false
	for i := range m.frequency {
		m.frequency[i], _ = openSource("/sys/devices/system/cpu/cpu"+strconv.Itoa(i)+"/cpufreq/scaling_cur_freq", 64)
		reported = reported || m.frequency[i] != nil
	}
	if !reported {
		// Read the frequencies once: where the machine does not report them, they do not
		// change.
		if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
			parseMHz(text, m.frequencies)
		}
	}
	return nil
}

// Processors returns the length of the per-processor lists of a reading. It includes processors
// that are off.
func (m *Meter) Processors() int { return len(m.loads) }

// Read reads the current state. It reuses the lists of r. The error is ErrGone if the process
// has ended.
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

// load computes the load of a processor. If no clock tick has passed, the last load stays.
func (m *Meter) load(i int) {
	now, was := m.cpus[i], m.were[i]
	if now == (cpuTime{}) || was == (cpuTime{}) { // the processor is or was off, or this is the first reading
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
