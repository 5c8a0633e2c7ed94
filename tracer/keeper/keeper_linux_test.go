package keeper

import (
	"encoding/gob"
	"errors"
	"io"
	"testing"
)

// A child that ends during a request causes an error, and not io.EOF, which would be taken for
// the end of a trace.
func TestEndOverARequest(t *testing.T) {
	tracer, child := sockets(t)
	taken := make(chan error, 1)
	go func() {
		var r request
		taken <- errors.Join(gob.NewDecoder(child).Decode(&r), child.Close())
	}()
	k := newKeeper(tracer)
	if err := k.Detach(); !errors.Is(err, ErrEnded) || errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
}
