package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/image"
	"rtrace-bpf/vmtest/machine"
	"rtrace-bpf/vmtest/suite"
)

// host is this machine's part in booting the same jobs one or more times.
type host struct {
	*settings
	target suite.Target
	token  string
	init   string // path of the guest's init
	root   string // root folder of the guest's programs and libraries

	settling sync.Mutex // apt can serve only one at a time
	noKVM    bool       // a trial failed

	// jobs returns the jobs for a guest, given the guest's folder with the programs that tests
	// trace.
	jobs     func(programs string) []guest.Job
	programs string // that folder on this machine
	fill     func(im *image.Image) error
	// Both are made when the first machine needs them.
	initrd  func() (string, error)
	vngPlan func() (string, error)
}

// newHost makes a folder for build results, which clean removes, and builds init.
func newHost(ctx context.Context, s *settings) (h *host, clean func(), err error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	root := filepath.Dir(strings.TrimSpace(string(gomod)))
	if err != nil || root == "." || root == "/dev" {
		return nil, nil, errors.New("not inside the module: there is no go.mod here or above")
	}
	top := filepath.Join(s.cache, "work")
	if err := os.MkdirAll(top, 0o755); err != nil {
		return nil, nil, err
	}
	work, err := os.MkdirTemp(top, "run-")
	if err != nil {
		return nil, nil, err
	}
	clean = func() { os.RemoveAll(work) }
	h = &host{
		settings: s,
		target:   suite.Target{Arch: s.arch, Root: root, Work: work},
		token:    "#vmtest-" + rand.Text(),
		init:     filepath.Join(work, "init"),
	}
	h.initrd, h.vngPlan = sync.OnceValues(h.makeInitrd), sync.OnceValues(h.makeVNGPlan)
	h.target.Compilers = h.crossCompilers
	build := exec.CommandContext(ctx, "go", "build", "-o", h.init, "./vmtest/cmd/init")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+s.arch, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		clean()
		return nil, nil, fmt.Errorf("build init: %w\n%s", err, out)
	}
	if err := h.findRoot(ctx); err != nil {
		clean()
		return nil, nil, fmt.Errorf("get programs for the guest: %w", err)
	}
	return h, clean, nil
}

// tryKVM boots a kernel with KVM and without jobs.
func (h *host) tryKVM(ctx context.Context, vmlinuz string) error {
	if h.arch != "amd64" && h.arch != "arm64" {
		return fmt.Errorf("no KVM for %s", h.arch)
	}
	plan := guest.Plan{Token: h.token}
	initrd := filepath.Join(h.target.Work, "trial.cpio")
	if err := h.write(initrd, &plan, nil); err != nil {
		return err
	}
	return machine.KVMWorks(ctx, h.spec(vmlinuz, initrd, h.append, true), plan.Token)
}

func (h *host) spec(vmlinuz, initrd, words string, kvm bool) machine.Spec {
	return machine.Spec{Arch: h.arch, Kernel: vmlinuz, Initrd: initrd, Memory: h.memory, CPUs: h.cpus, KVM: kvm, Append: words}
}

// write writes the first root file system of a guest.
func (h *host) write(path string, plan *guest.Plan, fill func(im *image.Image) error) error {
	im := image.New(h.root)
	im.Device("/dev/console", 0o600, 5, 1)
	for _, dir := range []string{"/proc", "/sys", "/tmp", "/run", "/root", "/var/tmp"} {
		im.Dir(dir)
	}
	if err := im.File("/init", h.init); err != nil {
		return err
	}
	text, err := plan.Marshal()
	if err != nil {
		return err
	}
	im.Text(guest.PlanPath, 0o644, text)
	if fill != nil {
		if err := fill(im); err != nil {
			return err
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(im.Write(f), f.Close())
}

// plan returns the plan for a guest that has the programs to trace in the given folder.
func (h *host) plan(programs string) *guest.Plan {
	return &guest.Plan{Token: h.token, Jobs: h.jobs(programs)}
}

// makeInitrd writes the files of QEMU's guests, which are the same for all kernels.
func (h *host) makeInitrd() (string, error) {
	path := filepath.Join(h.target.Work, "initrd.cpio")
	if err := h.write(path, h.plan(suite.GuestPrograms), h.fill); err != nil {
		return "", fmt.Errorf("make the guest's files: %w", err)
	}
	return path, nil
}

// makeVNGPlan writes the plan for virtme-ng's guests, which see this machine's files.
func (h *host) makeVNGPlan() (string, error) {
	text, err := h.plan(h.programs).Marshal()
	if err != nil {
		return "", err
	}
	path := filepath.Join(h.target.Work, "plan.json")
	return path, os.WriteFile(path, text, 0o644)
}

// boot runs the jobs on a machine.
func (h *host) boot(ctx context.Context, c *choice, limits machine.Limits, log io.Writer, handle func(guest.Event) error) error {
	if c.backend == backendVNG {
		plan, err := h.vngPlan()
		if err != nil {
			return err
		}
		v := machine.VNG{Kernel: c.path, Memory: h.memory, CPUs: h.cpus, KVM: c.kvm, Append: c.words(), Init: h.init, Plan: plan}
		return machine.Boot(ctx, v.Command, h.token, limits, log, handle)
	}
	initrd, err := h.initrd()
	if err != nil {
		return err
	}
	spec := h.spec(c.path, initrd, c.words(), c.kvm)
	return machine.Boot(ctx, spec.Command, h.token, limits, log, handle)
}

// limits returns the time limits for each machine.
func (h *host) limits() machine.Limits {
	return machine.Limits{Boot: h.settings.boot, All: h.limit, Tries: 2}
}
