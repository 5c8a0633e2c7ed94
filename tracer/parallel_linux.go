package tracer

import "sync"

// Parallel takes steps that do not need each other, side by side, and returns the error
// of the first of them that has one, once all are over.
func Parallel(steps ...func() error) error {
	errs := make([]error, len(steps))
	var running sync.WaitGroup
	for i, step := range steps {
		running.Go(func() { errs[i] = step() })
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
