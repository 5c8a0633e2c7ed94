package keeper

import (
	"encoding/gob"
	"errors"
	"io"
	"testing"
)

// A child that ends over a request is an error, and no end of a trace, which is what
// io.EOF would be taken for.
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
