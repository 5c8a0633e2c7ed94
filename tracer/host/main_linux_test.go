package host

import (
	"testing"

	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) {
	RunAsChild()
	testutil.Main(m)
}
