package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/image"
	"rtrace-bpf/vmtest/machine"
	"rtrace-bpf/vmtest/suite"
)

// host is this machine's side of one or more boots of the same plan.
type host struct {
	*settings
	target suite.Target
	plan   guest.Plan
	init   string // path of the guest's init
	root   string // where the guest's programs and libraries are; empty before they are needed
	initrd string // made when the first machine needs it
	fill   func(im *image.Image) error
}

// newHost makes a folder for what is built, which clean removes, and builds init.
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
		target:   suite.Target{Arch: s.arch, Root: root, Work: work, Log: os.Stderr},
		plan:     guest.Plan{Token: "#vmtest-" + rand.Text()},
		init:     filepath.Join(work, "init"),
	}
	h.target.Compilers = h.crossCompilers
	build := exec.CommandContext(ctx, "go", "build", "-o", h.init, "./vmtest/cmd/init")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+s.arch, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		clean()
		return nil, nil, fmt.Errorf("build init: %w\n%s", err, out)
	}
	return h, clean, nil
}

// choose settles which backend runs a machine, and whether with KVM.
func (h *host) choose(ctx context.Context, vmlinuz func(backend string) (string, error)) (backend string, kvm bool, err error) {
	backend = h.backend
	_, noVNG := exec.LookPath("vng")
	if backend == backendVNG && noVNG != nil {
		return "", false, errors.New("vng (virtme-ng) is not installed; README.md says how to get it")
	}
	if backend == backendAuto && noVNG != nil {
		backend = backendQEMU
	}
	switch h.accel {
	case "kvm":
		kvm = true
	case "auto":
		path, err := vmlinuz(backendQEMU)
		if err != nil {
			return "", false, err
		}
		why := h.tryKVM(ctx, path)
		kvm = why == nil
		if !kvm {
			fmt.Fprintf(os.Stderr, "vmtest: emulation, since KVM does not work here: %v\n", why)
		}
	}
	if backend == backendAuto {
		backend = backendQEMU
		if kvm {
			backend = backendVNG
		}
	}
	return backend, kvm, nil
}

func (h *host) tryKVM(ctx context.Context, vmlinuz string) error {
	if h.arch != "amd64" && h.arch != "arm64" {
		return fmt.Errorf("no KVM for %s", h.arch)
	}
	plan := guest.Plan{Token: h.plan.Token}
	initrd := filepath.Join(h.target.Work, "trial.cpio")
	if err := h.write(initrd, &plan, nil); err != nil {
		return err
	}
	return machine.KVMWorks(ctx, h.spec(vmlinuz, initrd, true), plan.Token)
}

func (h *host) spec(vmlinuz, initrd string, kvm bool) machine.Spec {
	return machine.Spec{Arch: h.arch, Kernel: vmlinuz, Initrd: initrd, Memory: h.memory, CPUs: h.cpus, KVM: kvm, Append: h.append}
}

// write writes the first root of a guest.
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

// boot runs the plan on a machine.
func (h *host) boot(ctx context.Context, backend string, kvm bool, vmlinuz string, handle func(guest.Event) error) error {
	limits := machine.Limits{Boot: h.settings.boot, All: h.limit}
	if backend == backendVNG {
		plan := filepath.Join(h.target.Work, "plan.json")
		text, err := h.plan.Marshal()
		if err != nil {
			return err
		}
		if err := os.WriteFile(plan, text, 0o644); err != nil {
			return err
		}
		v := machine.VNG{Kernel: vmlinuz, Memory: h.memory, CPUs: h.cpus, KVM: kvm, Append: h.append, Init: h.init, Plan: plan}
		return machine.Boot(ctx, v.Command, h.plan.Token, limits, os.Stderr, handle)
	}
	if h.initrd == "" {
		path := filepath.Join(h.target.Work, "initrd.cpio")
		if err := h.findRoot(ctx); err != nil {
			return fmt.Errorf("get programs for the guest: %w", err)
		}
		if err := h.write(path, &h.plan, h.fill); err != nil {
			return fmt.Errorf("make the guest's files: %w", err)
		}
		h.initrd = path
	}
	spec := h.spec(vmlinuz, h.initrd, kvm)
	return machine.Boot(ctx, spec.Command, h.plan.Token, limits, os.Stderr, handle)
}
