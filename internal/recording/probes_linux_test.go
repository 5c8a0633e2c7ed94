package recording

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"rtrace-bpf/internal/recording/status"
)

// A second signal does not wait for the probes to be removed.
func TestRemovalIsNotWaitedFor(t *testing.T) {
	hurry := make(chan struct{})
	close(hurry)
	p := probes{hurry: hurry, line: status.New(status.Options{Out: io.Discard})}
	never := make(chan struct{})
	defer close(never)
	err := p.await(func() error {
		<-never
		return nil
	})
	if !errors.Is(err, errRemovalHurried) {
		t.Errorf("the error is %v", err)
	}
	r := &Recording{following: &following{}, ends: []end{{err: err}, {err: err}}}
	if err := r.Result().Err; err == nil || strings.Count(err.Error(), "second signal") != 1 {
		t.Errorf("of several: %v", err)
	}
	want := os.ErrPermission
	p.hurry = nil
	if err := p.await(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}
