package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/vmtest/apt"
	"rtrace-bpf/vmtest/kernel"
	"rtrace-bpf/vmtest/userland"
)

// settings are the flags that all commands have.
type settings struct {
	arch     string
	backend  string
	accel    string
	cache    string
	memory   string
	cpus     int
	append   string
	limit    time.Duration
	boot     time.Duration
	userland []string
	env      []string
	private  *apt.Private // nil until it is needed
}

// Names of backends.
const (
	backendAuto = "auto"
	backendQEMU = "qemu"
	backendVNG  = "vng"
)

// declare declares the flags of a command.
func (s *settings) declare(command, synopsis string) *pflag.FlagSet {
	f := pflag.NewFlagSet(command, pflag.ContinueOnError)
	f.Usage = func() {
		fmt.Printf("usage: vmtest %s\n\n%s", synopsis, f.FlagUsages())
	}
	f.StringVar(&s.arch, "arch", runtime.GOARCH, "architecture of the machine: amd64, arm64")
	f.StringVar(&s.backend, "backend", backendAuto, "qemu, vng (virtme-ng), or auto: vng if it is installed and KVM works")
	f.StringVar(&s.accel, "accel", "auto", "tcg (emulation), kvm, or auto: kvm if a trial boot works")
	f.StringVar(&s.cache, "cache", defaultCache(), "folder of kernels and of what is built")
	f.StringVar(&s.memory, "memory", "3G", "memory of the machine")
	f.IntVar(&s.cpus, "cpus", 2, "CPUs of the machine")
	f.StringVar(&s.append, "append", "", "words to add to the kernel's command line")
	f.DurationVar(&s.limit, "limit", 3*time.Hour, "time after which a machine is stopped")
	f.DurationVar(&s.boot, "boot-limit", 3*time.Minute, "time after which a machine in which nothing has started is stopped")
	f.StringSliceVar(&s.userland, "userland", []string{"shell", "libraries", "allocators", "python", "sqlite", "strace", "binutils", "gdb", "c++", "node", "java"},
		"what of this machine a QEMU guest gets: "+strings.Join(userland.Names(), ", "))
	f.StringArrayVar(&s.env, "env", nil, "NAME=VALUE, or NAME of this environment: variable for the tests; may be given again")
	return f
}

func (s *settings) check() error {
	switch {
	case s.arch != "amd64" && s.arch != "arm64":
		return &usageError{fmt.Errorf("architecture %q: want amd64 or arm64", s.arch)}
	case s.backend != backendAuto && s.backend != backendQEMU && s.backend != backendVNG:
		return &usageError{fmt.Errorf("backend %q: want auto, qemu or vng", s.backend)}
	case s.accel != "auto" && s.accel != "tcg" && s.accel != "kvm":
		return &usageError{fmt.Errorf("acceleration %q: want auto, tcg or kvm", s.accel)}
	case s.backend == backendVNG && s.arch != runtime.GOARCH:
		return &usageError{errors.New("virtme-ng shares this machine's files: it runs only its architecture")}
	case s.cpus < 1:
		return &usageError{errors.New("--cpus: want at least 1")}
	case s.cache == "":
		return &usageError{errors.New("no folder for the cache: use --cache")}
	}
	abs, err := filepath.Abs(s.cache)
	s.cache = abs
	return err
}

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rtrace-vmtest")
}

// environment returns the variables that were selected for the tests.
func (s *settings) environment() []string {
	var all []string
	for _, v := range s.env {
		if name, _, set := strings.Cut(v, "="); !set {
			value, found := os.LookupEnv(name)
			if !found {
				continue
			}
			v = name + "=" + value
		}
		all = append(all, v)
	}
	return all
}

// archive returns the private apt, whose lists are downloaded once.
func (s *settings) archive(ctx context.Context) (*apt.Private, error) {
	if s.private != nil {
		return s.private, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, errors.New("cannot fetch kernels: apt-get is not installed; use --vmlinuz")
	}
	mirror, err := apt.SystemMirror("/")
	if err != nil {
		return nil, err
	}
	private, err := apt.Open(ctx, filepath.Join(s.cache, "apt"), s.arch, mirror)
	if err != nil {
		return nil, err
	}
	warning, err := private.Update(ctx)
	if warning != nil {
		progress{}.printf("warning: %v", warning)
	}
	if err != nil {
		return nil, err
	}
	s.private = private
	return private, nil
}

// kernelOf returns the newest kernel of a series, for a backend.
func (s *settings) kernelOf(ctx context.Context, series, backend string) (*kernel.Kernel, error) {
	private, err := s.archive(ctx)
	if err != nil {
		return nil, err
	}
	flavour := kernel.Cloud
	if backend == backendVNG {
		flavour = kernel.Generic // the cloud flavour has no 9p
	}
	return kernel.Fetch(ctx, private, filepath.Join(s.cache, "kernels"), series, flavour, s.arch, backend == backendVNG)
}
