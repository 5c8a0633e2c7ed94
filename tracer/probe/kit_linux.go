package probe

import (
	"errors"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
)

// probeGroup is a group of probes that a keeper attaches.
type probeGroup struct {
	keeper.Group
	probes    []plan.Probe
	originals []instruction // the instructions in the file at the probe sites
}

// kit collects what a keeper receives: programs, open files, and the groups that refer to
// them by number.
type kit struct {
	multi    bool           // groups become uprobe_multi links
	cookies  bool           // sites have cookies
	numbers  map[string]int // numbers of the files, by path
	files    []*os.File
	programs []*ebpf.Program
	groups   []probeGroup
}

// newKit returns an empty kit for probes of a plan. The caller must close it.
func newKit(p *plan.Plan) *kit {
	return &kit{
		multi: p.Mechanisms.Attach == host.MechanismMulti, cookies: p.Mechanisms.Sites == plan.SitesCookie,
		numbers: map[string]int{},
	}
}

// file opens the file of a probe, unless it is open, and returns its number. The error
// contains the path.
func (k *kit) file(p *plan.Probe) (int, error) {
	if number, ok := k.numbers[p.File]; ok {
		return number, nil
	}
	f, err := os.OpenFile(p.File, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	k.numbers[p.File] = len(k.files)
	k.files = append(k.files, f)
	return len(k.files) - 1, nil
}

// add puts a probe that runs a program into the group with the same program, file and
// kind. Groups are attached in their order. ret makes it a return probe.
func (k *kit) add(run *ebpf.Program, cookie uint64, file int, p *plan.Probe, ret bool) {
	program := slices.Index(k.programs, run)
	if program < 0 {
		program = len(k.programs)
		k.programs = append(k.programs, run)
	}
	at := slices.IndexFunc(k.groups, func(g probeGroup) bool {
		return g.Program == program && g.File == file && g.Return == ret
	})
	if at < 0 {
		at = len(k.groups)
		k.groups = append(k.groups, probeGroup{Group: keeper.Group{
			Program: program, File: file, Return: ret, Multi: k.multi, Cookies: k.cookies,
		}})
	}
	g := &k.groups[at]
	site := keeper.Site{Offset: p.Offset}
	if g.Cookies {
		site.Cookie = cookie
	}
	g.Sites, g.probes = append(g.Sites, site), append(g.probes, *p)
	g.originals = append(g.originals, readInstruction(k.files[file], p.Offset))
}

// Close closes the files; a keeper that received them keeps its own.
func (k *kit) Close() error {
	var all []error
	for _, f := range k.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}
