package tracer

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"rtrace-bpf/tracer/arrival"
	"rtrace-bpf/tracer/keeper"
)

// ownProgram is the program that runs: the tracer's children are that again, told by
// their name what to do.
const ownProgram = "/proc/self/exe"

const (
	childSeccomp     = "rtrace-bpf-preflight-seccomp"
	childShadowStack = "rtrace-bpf-preflight-shadow-stack"
	childCosts       = "rtrace-bpf-preflight-costs"
)

// RunAsChild does what the process was started for, and ends it, if it is a child
// that the tracer has started. The main function of every program that uses this
// package calls it first.
func RunAsChild() {
	var work func()
	switch os.Args[0] {
	case childSeccomp:
		work = makeForbiddenCall
	case childShadowStack:
		work = makeStubsCall
	case childCosts:
		work = measureOwnCosts
	case keeper.Name:
		work = keeper.Run
	case arrival.Name:
		work = arrival.Run
	default:
		return
	}
	runtime.LockOSThread()
	work()
	os.Exit(0)
}

// measureOwnCosts is what the child of MeasureCosts does.
func measureOwnCosts() {
	debug.SetGCPercent(-1) // nobody holds the probes, which would end with their values
	m := MechanismPerf
	if len(os.Args) > 1 && os.Args[1] == MechanismMulti.String() {
		m = MechanismMulti
	}
	costs, err := ownCosts(m)
	if err == nil {
		_, err = fmt.Println(int64(costs.Entry), int64(costs.Return))
	}
	if err != nil {
		fmt.Fprint(os.Stderr, err, ": ")
		os.Exit(1)
	}
}
