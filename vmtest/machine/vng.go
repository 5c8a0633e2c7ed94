package machine

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// VNG is a machine of virtme-ng: its root file system is the host's own, read-only, over 9p. So
// it needs a kernel with that file system and with its modules, and no first root file system.
// It takes far longer to start.
type VNG struct {
	Kernel string // next to its lib/modules
	Memory string // 2G
	CPUs   int
	KVM    bool
	Append string
	Init   string // path of vmtest's init
	Plan   string // path of the plan
}

// Command returns the virtme-ng command that runs the machine.
func (v *VNG) Command(ctx context.Context) (*exec.Cmd, error) {
	args := []string{"--run", v.Kernel}
	if !v.KVM {
		// virtme-ng would take an unusable /dev/kvm for a usable one, and hang. For emulation
		// see Spec.Command.
		args = append(args, "--disable-kvm", "--qemu-opts=-accel "+emulation)
	}
	// Debian has no daemon that serves virtiofs to it. If the guest has no udev, the output
	// goes through the console, which is passed on only with --verbose.
	args = append(args, "--verbose", "--force-9p", "--memory", v.Memory, "--cpus", strconv.Itoa(v.CPUs), "--user", "root")
	for word := range strings.FieldsSeq(v.Append) {
		args = append(args, "--append", word)
	}
	args = append(args, "--exec", v.Init+" run-jobs "+v.Plan)
	return exec.CommandContext(ctx, "vng", args...), nil
}
