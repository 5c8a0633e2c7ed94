package survey

import (
	"testing"

	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }
