package tracer

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
)

// probeGroup is a group of probes that the keeper attaches.
type probeGroup struct {
	keeper.Group
	probes    []plan.Probe
	originals []instruction // the instructions in the file at the probe sites
}

// probe attaches the probes. If replace is set, they replace probes whose thread has
// ended.
func (k *kernel) probe(p *plan.Plan, replace bool) error {
	tid := p.Target.PID // never 0, which would mean all processes
	if carrier, _ := p.Target.Carrier(); carrier != 0 {
		tid = carrier
	}
	k.task.Store(int32(tid))
	if !k.equipped {
		if err := k.equipKeeper(p, p.Layout.Placements(&k.objects)); err != nil {
			return err
		}
	}
	groups := make([]keeper.Group, len(k.probed))
	for i := range groups {
		groups[i] = k.probed[i].Group
		groups[i].PID = tid
		if p.Mechanisms.Attach == host.MechanismMulti {
			groups[i].PID = p.Target.PID
		}
	}
	attach := k.keeper.Attach
	if replace {
		attach = k.keeper.Replace
	}
	if err := attach(groups); err != nil {
		return k.explain(err)
	}
	if p.Mechanisms.Attach == host.MechanismMulti && tid != p.Target.PID {
		// The main thread has ended, so the kernel has inserted nothing.
		return k.hold(p, tid)
	}
	return nil
}

// explain adds the probes to an error of the keeper.
func (k *kernel) explain(err error) error {
	var failed *keeper.Error
	if !errors.As(err, &failed) {
		return err
	}
	g := &k.probed[failed.Group]
	if g.Multi {
		return fmt.Errorf("attach %d probes to %s: %w", len(g.probes), g.probes[0].Path, err)
	}
	return fmt.Errorf("attach probe to %s of %s: %w", g.probes[failed.Site].Function, g.probes[failed.Site].Path, host.PerfRefused(err))
}

// startKeeper starts the process that holds the probes.
func (k *kernel) startKeeper() (err error) {
	k.keeper, err = keeper.Start()
	return err
}

// equipKeeper opens the files and passes them to the keeper, which keeps them open. When
// the probes are attached again, another file may have the path, or the thread whose
// /proc entry is in the path may have ended.
func (k *kernel) equipKeeper(p *plan.Plan, placements []plan.Placement) (err error) {
	var programs []*ebpf.Program
	var files []*os.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	numbers := map[string]int{}
	for _, at := range placements {
		for _, probe := range at.Probes {
			if _, ok := numbers[probe.File]; ok {
				continue
			}
			f, err := os.OpenFile(probe.File, os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				return err // the error contains the path
			}
			numbers[probe.File] = len(files)
			files = append(files, f)
		}
		k.place(p, &at, len(programs), numbers, files)
		programs = append(programs, at.Program)
	}
	if k.keeper == nil {
		if err := k.startKeeper(); err != nil {
			return err
		}
	}
	k.equipped = true
	return k.keeper.Give(programs, files)
}

// place makes a group for each file of a placement.
func (k *kernel) place(p *plan.Plan, at *plan.Placement, program int, numbers map[string]int, files []*os.File) {
	groups := map[int]*probeGroup{}
	var order []*probeGroup
	for _, probe := range at.Probes {
		file := numbers[probe.File]
		g := groups[file]
		if g == nil {
			g = &probeGroup{Group: keeper.Group{
				Program: program, File: file, Return: at.Ret,
				Multi: p.Mechanisms.Attach == host.MechanismMulti, Cookies: p.Mechanisms.Sites == plan.SitesCookie,
			}}
			groups[file], order = g, append(order, g)
		}
		site := keeper.Site{Offset: probe.Offset}
		if g.Cookies {
			site.Cookie = probe.Site
		}
		g.Sites, g.probes = append(g.Sites, site), append(g.probes, probe)
		g.originals = append(g.originals, readInstruction(files[file], probe.Offset))
	}
	for _, g := range order {
		k.probed = append(k.probed, *g)
	}
}

// reattach attaches the probes that detach removed. The programs forget the calls that
// were open then.
func (k *kernel) reattach(p *plan.Plan) error { return k.probeAgain(p, false) }

// revive is reattach for perf events whose thread has ended: no program runs for them any
// more. Removing them takes seconds.
func (k *kernel) revive(p *plan.Plan) error {
	if err := k.probeAgain(p, true); err != nil || k.functions == nil {
		return err
	}
	return k.functions.replace(int(k.task.Load()))
}

func (k *kernel) probeAgain(p *plan.Plan, replace bool) error {
	k.gaps++
	if err := k.objects.Gaps.Set(k.gaps); err != nil {
		return fmt.Errorf("count a gap for the programs: %w", err)
	}
	return k.probe(p, replace)
}

// detach removes the probes.
func (k *kernel) detach() error { return k.keeper.Detach() }
