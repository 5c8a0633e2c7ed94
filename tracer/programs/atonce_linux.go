package programs

import "sync"

// atOnce runs steps concurrently and waits for all of them. It returns the error of the
// first step in order that failed.
func atOnce(steps ...func() error) error {
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
