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

// patience is how long a process waits in the kernel for its holder before it is
// stopped by a signal. Its processor does nothing else meanwhile.
const patience = 5 * time.Millisecond

// maxName is how much of a command name the kernel keeps.
const maxName = 15

// key is that of the one entry of the map of arrivals.
const key = uint32(0)

// load loads the programs that wait for a name. processors is how many there are.
func load(name string, processors int) (*arrivalObjects, error) {
	// Kernels before 5.11 charge BPF memory to it.
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
	if processors == 1 { // the holder would not run meanwhile
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
		return nil, errors.Join(fmt.Errorf("have a BPF program call itself: %w", err), o.Close())
	}
	return &o, nil
}

// arrivals is the map with the process that was taken.
type arrivals struct{ *ebpf.Map }

// taken returns the process, as it is now. There is none if its state is 0, or that of
// one that nobody waits for.
func (a arrivals) taken() (arrivalArrival, error) {
	var now arrivalArrival
	if err := a.Lookup(key, &now); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return now, fmt.Errorf("look for the process: %w", err)
	}
	return now, nil
}

// stopped says whether the process was sent SIGSTOP. It is for when that has been
// decided.
func (a arrivals) stopped() bool {
	now, err := a.taken()
	return err != nil || now.State == uint32(arrivalArrivalStateARRIVAL_STOPPED) // to continue one that runs does no harm
}

// shut ends the waiting. It says whether nobody had come; nobody will, then.
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

// settling is how long the kernel may take to decide what becomes of a process that
// was taken, with much to spare.
const settling = 10 * time.Second

// resume continues the process if it was stopped by the signal. It waits until that is
// decided.
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
		// To continue one that runs does nothing to a program that has only begun.
		err = unix.Kill(int(now.Pid), unix.SIGCONT)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("continue process %d, which was stopped until it could be held: %w; do kill -CONT %d", now.Pid, err, now.Pid)
		}
		return nil
	}
}
