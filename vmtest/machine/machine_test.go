package machine

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/vmtest/guest"
)

func TestCommand(t *testing.T) {
	for arch, want := range map[string]string{
		"amd64": "qemu-system-x86_64 -M q35 -cpu max -vga none -accel tcg,thread=single -smp 2 -m 1G -nodefaults -display none -nic none -no-reboot -serial stdio -kernel K -initrd I -append console=ttyS0 quiet panic=-1 preempt=full",
		"arm64": "qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -accel tcg,thread=single -smp 2 -m 1G -nodefaults -display none -nic none -no-reboot -serial stdio -kernel K -initrd I -append console=ttyAMA0 quiet panic=-1 preempt=full",
	} {
		s := &Spec{Arch: arch, Kernel: "K", Initrd: "I", Memory: "1G", CPUs: 2, Append: "preempt=full"}
		cmd, err := s.Command(t.Context())
		if err != nil || strings.Join(cmd.Args, " ") != want {
			t.Errorf("%s: %v %q", arch, err, cmd.Args)
		}
	}
	if _, err := (&Spec{Arch: "riscv64"}).Command(t.Context()); err == nil {
		t.Error("riscv64 is not known")
	}
}

// A shell plays the machine.
func TestFollow(t *testing.T) {
	ample := Limits{Boot: time.Minute, All: time.Minute}
	tests := map[string]struct {
		script  string
		limits  Limits
		started bool
		end     bool // the status of the job came
		err     string
	}{
		"whole":       {`echo '#t start 0'; echo ok; echo '#t end 0 0'; echo '#t over'`, ample, true, true, ""},
		"panic":       {`echo 'Kernel panic - not syncing'`, ample, false, false, ErrNoEnd.Error()},
		"panic later": {`echo '#t start 0'; echo 'Kernel panic'`, ample, true, false, ErrNoEnd.Error()},
		"status only": {`echo '#t start 0'; echo '#t end 0 0'; exit 3`, ample, true, true, "exit status 3"},
		"no boot":     {`exec sleep 1000`, Limits{time.Millisecond, time.Minute}, false, false, "no job had started after 1ms"},
		"hangs":       {`echo '#t start 0'; sleep 1000 & wait`, Limits{time.Minute, 200 * time.Millisecond}, true, false, "it was stopped after 200ms"},
		"damaged":     {`echo '#t start x'; exec sleep 1000`, ample, false, false, "start x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			end := false
			started, err := Follow(t.Context(), func(ctx context.Context) (*exec.Cmd, error) {
				return exec.CommandContext(ctx, "sh", "-c", test.script), nil
			}, "#t", test.limits, func(e guest.Event) error {
				end = end || e.Kind == guest.End
				return nil
			})
			if started != test.started || end != test.end {
				t.Errorf("started %v, end %v", started, end)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// What handle refuses ends the machine.
func TestFollowStops(t *testing.T) {
	refused := errors.New("refused")
	_, err := Follow(t.Context(), func(ctx context.Context) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, "sh", "-c", "echo hello; exec sleep 1000"), nil
	}, "#t", Limits{time.Minute, time.Minute}, func(guest.Event) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}
