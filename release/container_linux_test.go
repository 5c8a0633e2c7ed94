package release

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// container is the words of a command that runs in a container, whose bundle umoci has unpacked, with the
// rights that `podman run --privileged --pid=host` would give it: all that the test itself has.
func (r *root) container(t *testing.T, words []string) []string {
	t.Helper()
	file := filepath.Join(r.bundle, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	rights := capabilities(t)
	process := object(t, config, "process")
	process["terminal"], process["noNewPrivileges"], process["args"] = false, false, words
	process["capabilities"] = map[string]any{"bounding": rights, "effective": rights, "permitted": rights}
	mounts := []any{}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		mounts = append(mounts, map[string]any{"destination": dir, "type": "bind", "source": dir, "options": []string{"rbind"}})
	}
	config["mounts"] = mounts
	linux := object(t, config, "linux")
	linux["namespaces"] = []any{map[string]any{"type": "mount"}, map[string]any{"type": "ipc"}, map[string]any{"type": "uts"}}
	for _, limit := range []string{"resources", "maskedPaths", "readonlyPaths", "seccomp"} {
		delete(linux, limit)
	}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	r.runs++
	return []string{"runc", "--root", t.TempDir(), "run", "--bundle", r.bundle, fmt.Sprintf("rtrace-bpf-test-%d-%d", os.Getpid(), r.runs)}
}

func object(t *testing.T, in map[string]any, name string) map[string]any {
	t.Helper()
	of, ok := in[name].(map[string]any)
	if !ok {
		t.Fatalf("no %s in the configuration", name)
	}
	return of
}

// capabilityNames are all capabilities in the order of their numbers (linux/capability.h).
const capabilityNames = `CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
	NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE
	SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM
	BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`

// capabilities returns those that this process has.
func capabilities(t *testing.T) (names []string) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^CapPrm:\s*(\w+)$`).FindSubmatch(status)
	if m == nil {
		t.Fatal("no capabilities in /proc/self/status")
	}
	has, err := strconv.ParseUint(string(m[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range strings.Fields(capabilityNames) {
		if has>>i&1 != 0 {
			names = append(names, "CAP_"+name)
		}
	}
	return names
}
