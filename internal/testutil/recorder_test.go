package testutil

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test that is expected to fail or to be skipped.
type recorder struct {
	testing.TB
	name    string
	message string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return r.name }

func (r *recorder) Fatal(args ...any) { r.end(fmt.Sprint(args...)) }
func (r *recorder) Skip(args ...any)  { r.end("skip: " + fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.end(fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
}

func (r *recorder) end(message string) {
	r.message = message
	runtime.Goexit()
}

// fatal returns the message with which do ended, or "" if it returned.
func fatal(do func(r *recorder)) string {
	var r recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(&r)
	}()
	<-done
	return r.message
}
