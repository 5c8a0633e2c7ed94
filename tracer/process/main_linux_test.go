package process

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
)

func TestMain(m *testing.M) {
	host.RunAsChild()
	testutil.Main(m)
}
