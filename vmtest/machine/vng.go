package machine

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// VNG is a machine that virtme-ng makes: its root is the host's own, not to be
// written to, over 9p. So it needs a kernel with that file system and its
// modules, and no first root of ours; but it takes far longer to start.
type VNG struct {
	Kernel string // beside lib/modules
	Memory string // 2G
	CPUs   int
	KVM    bool
	Append string
	Init   string // path of vmtest's init
	Plan   string // path of the plan
}

// Command returns the virtme-ng that runs the machine.
func (v *VNG) Command(ctx context.Context) (*exec.Cmd, error) {
	args := []string{"--run", v.Kernel}
	if !v.KVM {
		// It would take an unusable /dev/kvm for a usable one, and hang. The other
		// is as in Spec.Command.
		args = append(args, "--disable-kvm", "--qemu-opts=-accel "+emulation)
	}
	// Debian has no daemon that serves virtiofs to it.
	// Where the guest has no udev, the console is the way of the output, and only
	// a verbose one is passed on.
	args = append(args, "--verbose", "--force-9p", "--memory", v.Memory, "--cpus", strconv.Itoa(v.CPUs), "--user", "root")
	for word := range strings.FieldsSeq(v.Append) {
		args = append(args, "--append", word)
	}
	args = append(args, "--exec", v.Init+" run-jobs "+v.Plan)
	return exec.CommandContext(ctx, "vng", args...), nil
}
