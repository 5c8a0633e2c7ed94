package arrival

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// patience is how long a process waits in the kernel for its holder before a signal stops it. Its
// processor does nothing else in that time.
const patience = 5 * time.Millisecond

// maxName is how many bytes of a command name the kernel keeps.
const maxName = 15

// key is the key of the only entry of the map of arrivals.
const key = uint32(0)

// load loads the programs that wait for a name, for the given number of processors.
func load(name string, processors int) (*arrivalObjects, error) {
	// Kernels before 5.11 charge BPF memory to the limit of locked memory.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("raise the limit of locked memory: %w", err)
	}
	spec, err := loadArrival()
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return nil, fmt.Errorf("read own process id namespace: %w", &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err})
	}
	var comm [maxName + 1]uint8
	copy(comm[:maxName], name)
	wait := uint64(patience)
	if processors == 1 { // the holder could not run in the meantime
		wait = 0
	}
	for name, value := range map[string]any{
		arrivalVarCfgComm: comm, arrivalVarCfgPidns: uint32(st.Ino), arrivalVarCfgPatience: wait,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	wakes := spec.Maps[arrivalMapWakes]
	wakes.MaxEntries = max(wakes.MaxEntries, uint32(os.Getpagesize()))
	var o arrivalObjects
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return nil, fmt.Errorf("load BPF programs: %w", err)
	}
	if err := o.Stays.Put(key, o.Stay); err != nil {
		return nil, errors.Join(fmt.Errorf("make a BPF program call itself: %w", err), o.Close())
	}
	return &o, nil
}

// arrivals is the map with the process that was selected.
type arrivals struct{ *ebpf.Map }

// taken returns the process in its current state. There is no process if the state is 0 or that
// of a process that is not waited for.
func (a arrivals) taken() (arrivalArrival, error) {
	var now arrivalArrival
	if err := a.Lookup(key, &now); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return now, fmt.Errorf("look for the process: %w", err)
	}
	return now, nil
}

// stopped reports whether SIGSTOP was sent to the process. Call it only when that has been
// decided.
func (a arrivals) stopped() bool {
	now, err := a.taken()
	return err != nil || now.State == uint32(arrivalArrivalStateARRIVAL_STOPPED) // continuing a running process does no harm
}

// shut stops waiting. It reports whether no process had arrived; none can arrive afterwards.
func (a arrivals) shut() (nobody bool, err error) {
	closed := arrivalArrival{State: uint32(arrivalArrivalStateARRIVAL_CLOSED)}
	err = a.Update(key, &closed, ebpf.UpdateNoExist)
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, ebpf.ErrKeyExist):
		return false, fmt.Errorf("end the waiting: %w", err)
	}
	now, err := a.taken()
	return now.State == uint32(arrivalArrivalStateARRIVAL_CLOSED), err
}

// settling is how long the kernel may take to decide what happens to a selected process, with
// ample margin.
const settling = 10 * time.Second

// resume continues the process if the signal has stopped it. It waits until that is decided.
func (a arrivals) resume() error {
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for limit := time.Now().Add(settling); ; <-ticks.C {
		now, err := a.taken()
		if err != nil {
			return err
		}
		switch {
		case now.State == uint32(arrivalArrivalStateARRIVAL_WAITS) && time.Now().Before(limit):
			continue
		case now.State != uint32(arrivalArrivalStateARRIVAL_STOPPED):
			return nil
		}
		// Continuing a program that has only just begun has no effect on it.
		err = unix.Kill(int(now.Pid), unix.SIGCONT)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("continue process %d, which was stopped until it could be held: %w; run kill -CONT %d", now.Pid, err, now.Pid)
		}
		return nil
	}
}
