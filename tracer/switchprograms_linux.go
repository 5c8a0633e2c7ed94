package tracer

import (
	"errors"
	"fmt"
)

// enable switches the programs on, unless disable was called.
func (k *kernel) enable() error {
	k.switching.Lock()
	defer k.switching.Unlock()
	if k.over {
		return nil
	}
	if err := k.set(1); err != nil {
		return fmt.Errorf("switch the probes on: %w", err)
	}
	return nil
}

// set switches the programs on (1) or off (0).
func (k *kernel) set(on uint32) error {
	if err := k.objects.Enabled.Set(on); err != nil {
		return err
	}
	return k.renew()
}

// renew makes the programs read the switch and the registered process again.
func (k *kernel) renew() error {
	return k.objects.Generation.Set(k.generation.Add(1))
}

// disable switches the programs off for good: they return at once.
func (k *kernel) disable() error {
	k.switching.Lock()
	defer k.switching.Unlock()
	k.over = true
	var all [2]error
	if k.activity != nil {
		all[0] = k.activity.Disable()
	}
	if k.functions != nil {
		all[1] = k.functions.functions.Disable()
	}
	return errors.Join(append(all[:], k.off())...)
}

// suspend switches the programs off until enable is called.
func (k *kernel) suspend() error {
	k.switching.Lock()
	defer k.switching.Unlock()
	return k.off()
}

func (k *kernel) off() error {
	if err := k.set(0); err != nil {
		return fmt.Errorf("switch the probes off: %w", err)
	}
	return nil
}
