package programs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"rtrace-bpf/tracer/object"
)

// Switch switches the programs on and off. Any goroutine may call its methods, except
// Add.
type Switch struct {
	objects *object.ProbeVariables
	// generation makes the programs read their settings again, see bpf/state.h. The
	// collector and the reader both increment it.
	generation atomic.Uint32

	mu     sync.Mutex // guards over, and the programs' switch
	over   bool       // the programs stay switched off
	others []Disabler
}

// Disabler is other programs that end with the recording.
type Disabler interface {
	Disable() error // switches them off for good
}

// Add has Disable switch off other programs as well. Call it before the recording starts.
func (s *Switch) Add(other Disabler) { s.others = append(s.others, other) }

// Enable switches the programs on, unless Disable was called.
func (s *Switch) Enable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	if err := s.set(1); err != nil {
		return fmt.Errorf("switch the probes on: %w", err)
	}
	return nil
}

// set switches the programs on (1) or off (0).
func (s *Switch) set(on uint32) error {
	if err := s.objects.Enabled.Set(on); err != nil {
		return err
	}
	return s.Renew()
}

// Renew makes the programs read the switch and the registered process again.
func (s *Switch) Renew() error {
	return s.objects.Generation.Set(s.generation.Add(1))
}

// Disable switches all programs off for good: they return at once.
func (s *Switch) Disable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	var all []error
	for _, other := range s.others {
		all = append(all, other.Disable())
	}
	return errors.Join(append(all, s.off())...)
}

// Suspend switches the programs off until Enable is called.
func (s *Switch) Suspend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off()
}

func (s *Switch) off() error {
	if err := s.set(0); err != nil {
		return fmt.Errorf("switch the probes off: %w", err)
	}
	return nil
}
