package host

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// preflightTarget is the function of this process that tests put a probe on.
//
//go:noinline
func preflightTarget() {}

// preflighting is locked while preflightTarget is probed. Two tests at a time would count
// each other's calls.
var preflighting sync.Mutex

// EndPreflight waits until no test has a probe in this process.
func EndPreflight() {
	preflighting.Lock()
	defer preflighting.Unlock()
}

// multiSeesThreads tests that a uprobe_multi link with a process filter fires
// in a thread other than the first one. Before kernel 6.10 (commit
// 46ba0e49b642) it did not, so most of a process was silently missing.
func multiSeesThreads() error {
	preflighting.Lock()
	n, l, err := callsSeen()
	if l == nil {
		preflighting.Unlock()
	} else {
		// Close takes a grace period of the kernel. Only EndPreflight waits for it.
		go func() {
			defer preflighting.Unlock()
			_ = l.Close() // only closes a descriptor
		}()
	}
	switch {
	case err != nil:
		return fmt.Errorf("test uprobe_multi: %w", err)
	case n != 1:
		return unsupported("uprobe_multi with a working process filter", "6.10")
	}
	return nil
}

// callsSeen puts a probe on preflightTarget and calls it once, in a thread that is not the
// first. It returns how often the probe was hit, and the probe for the caller to close;
// that is nil if it could not be attached.
func callsSeen() (n uint64, probe io.Closer, err error) {
	offset, err := ownFileOffset(reflect.ValueOf(preflightTarget).Pointer())
	if err != nil {
		return 0, nil, err
	}
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return 0, nil, err
	}
	defer hits.Close()
	program, err := countingProgram(hits, ebpf.AttachTraceUprobeMulti)
	if err != nil {
		return 0, nil, err
	}
	defer program.Close()
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return 0, nil, err
	}
	l, err := exe.UprobeMulti(nil, program, &link.UprobeMultiOptions{
		Addresses: []uint64{offset}, PID: uint32(os.Getpid()),
	})
	if err != nil {
		return 0, nil, err
	}
	callOffMainThread(preflightTarget)
	err = hits.Lookup(uint32(0), &n)
	return n, l, err
}

// callOffMainThread calls f in a thread that is not the process's first.
func callOffMainThread(f func()) {
	done := make(chan bool)
	var call func()
	call = func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Gettid() == os.Getpid() {
			// This goroutine keeps the first thread, so that the next one runs in another.
			go call()
			<-done
			return
		}
		f()
		close(done)
	}
	go call()
	<-done
}

// ownFileOffset returns the offset in /proc/self/exe of the code at addr.
func ownFileOffset(addr uintptr) (uint64, error) {
	maps, err := proc.Maps(os.Getpid())
	if err != nil {
		return 0, fmt.Errorf("find own code: %w", err)
	}
	for _, m := range maps {
		if uint64(addr) >= m.Start && uint64(addr) < m.End {
			return uint64(addr) - m.Start + m.Offset, nil
		}
	}
	return 0, fmt.Errorf("find own code: no mapping at %#x", addr)
}

// countingProgram loads a program that adds one to the first value of counters.
func countingProgram(counters *ebpf.Map, attach ebpf.AttachType) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "count", Type: ebpf.Kprobe, AttachType: attach, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, counters.FD()),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "end"),
			asm.Mov.Imm(asm.R1, 1),
			asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
			asm.Return(),
		},
	})
}
