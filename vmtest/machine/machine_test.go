package machine

import (
	"context"
	"errors"
	"io"
	"os"
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

func TestCommandOfVNG(t *testing.T) {
	for kvm, want := range map[bool]string{
		false: "vng --run K --disable-kvm --qemu-opts=-accel tcg,thread=single --verbose --force-9p --memory 1G --cpus 2 --user root --append a=1 --append b --exec /init run-jobs /plan",
		true:  "vng --run K --verbose --force-9p --memory 1G --cpus 2 --user root --append a=1 --append b --exec /init run-jobs /plan",
	} {
		v := &VNG{Kernel: "K", Memory: "1G", CPUs: 2, KVM: kvm, Append: "a=1 b", Init: "/init", Plan: "/plan"}
		cmd, err := v.Command(t.Context())
		if err != nil || strings.Join(cmd.Args, " ") != want {
			t.Errorf("KVM %v: %v %q", kvm, err, cmd.Args)
		}
	}
}

func limited(boot, all time.Duration) Limits { return Limits{Boot: boot, All: all, Tries: 2} }

// A shell script acts as the machine.
func TestFollow(t *testing.T) {
	ample := limited(time.Minute, time.Minute)
	tests := map[string]struct {
		script  string
		limits  Limits
		started bool
		end     bool // the status of the job was reported
		err     string
	}{
		"whole":       {`echo '#t start 0'; echo ok; echo '#t end 0 0'; echo '#t over'`, ample, true, true, ""},
		"panic":       {`echo 'Kernel panic - not syncing'`, ample, false, false, ErrNoEnd.Error()},
		"panic later": {`echo '#t start 0'; echo 'Kernel panic'`, ample, true, false, ErrNoEnd.Error()},
		"status only": {`echo '#t start 0'; echo '#t end 0 0'; exit 3`, ample, true, true, "exit status 3"},
		"no boot":     {`exec sleep 1000`, limited(time.Millisecond, time.Minute), false, false, "no job had started after 1ms"},
		"hangs":       {`echo '#t start 0'; sleep 1000 & wait`, limited(time.Minute, 3*time.Second), true, false, "it was stopped after 3s"},
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

// What a machine's program started ends with it, even if the program crashes.
func TestFollowLeavesNothing(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	_, err = Follow(t.Context(), func(ctx context.Context) (*exec.Cmd, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 1")
		cmd.ExtraFiles = []*os.File{write} // held by sleep
		return cmd, nil
	}, "#t", limited(time.Minute, time.Minute), func(guest.Event) error { return nil })
	if !errors.Is(err, ErrNoEnd) {
		t.Errorf("error %v", err)
	}
	write.Close()
	if _, err := io.ReadAll(read); err != nil { // waits for sleep to end
		t.Error(err)
	}
}

// An error of handle stops the machine.
func TestFollowStops(t *testing.T) {
	refused := errors.New("refused")
	_, err := Follow(t.Context(), func(ctx context.Context) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, "sh", "-c", "echo hello; exec sleep 1000"), nil
	}, "#t", limited(time.Minute, time.Minute), func(guest.Event) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}

// Only a machine in which no job has started is booted again.
func TestBoot(t *testing.T) {
	const good = `echo '#t start 0'; echo '#t end 0 0'; echo '#t over'`
	tests := map[string]struct {
		first, second string
		limits        Limits
		boots         int
		err           error // in addition to ErrNoEnd
		good          bool
	}{
		"at once":     {good, "", limited(time.Minute, time.Minute), 1, nil, true},
		"second try":  {"echo 'Kernel panic'", good, limited(time.Minute, time.Minute), 2, nil, true},
		"never":       {"echo 'Kernel panic'", "exit 1", limited(time.Minute, time.Minute), 2, ErrNoStart, false},
		"one try":     {"echo 'Kernel panic'", good, Limits{Boot: time.Minute, All: time.Minute, Tries: 1}, 1, ErrNoStart, false},
		"hangs":       {"exec sleep 1000", "exec sleep 1000", limited(time.Millisecond, time.Minute), 2, ErrNoStart, false},
		"has started": {`echo '#t start 0'; echo 'Kernel panic'`, good, limited(time.Minute, time.Minute), 1, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			boots := 0
			var log strings.Builder
			err := Boot(t.Context(), func(ctx context.Context) (*exec.Cmd, error) {
				boots++
				return exec.CommandContext(ctx, "sh", "-c", []string{test.first, test.second}[boots-1]), nil
			}, "#t", test.limits, &log, func(guest.Event) error { return nil })
			if boots != test.boots || (err == nil) != test.good || errors.Is(err, ErrNoStart) != (test.err != nil) {
				t.Errorf("%d boots, error %v", boots, err)
			}
			if err != nil && !errors.Is(err, ErrNoEnd) {
				t.Errorf("error %v, want ErrNoEnd as well", err)
			}
			if again := strings.Contains(log.String(), "BOOTING ONCE MORE"); again != (boots > 1) {
				t.Errorf("log:\n%s", log.String())
			}
		})
	}
}
