package swap

import (
	"encoding/json"
	"fmt"
	"maps"

	wire "rtrace-bpf/internal/wire/swap"
)

// ParseSide parses the facts in the side file of a stream. Without facts it returns an
// empty Side.
func ParseSide(facts []byte) (wire.Side, error) {
	if len(facts) == 0 {
		return wire.Side{}, nil
	}
	var side wire.Side
	if err := json.Unmarshal(facts, &side); err != nil {
		return wire.Side{}, fmt.Errorf("facts about swap: %w", err)
	}
	return side, nil
}

// SetFacts gives the reader the facts in the side file of its stream: the numbers of
// processors and devices in SYSTEM, and names of functions. Call it before the first
// ReadRecord.
func (d *Reader) SetFacts(facts []byte) error {
	side, err := ParseSide(facts)
	if err != nil {
		return err
	}
	o := Options{CPUs: side.CPUs, Devices: len(side.Devices)}
	if err := o.check(); err != nil {
		return err
	}
	d.parser.opts.CPUs, d.parser.opts.Devices = o.CPUs, o.Devices
	maps.Copy(d.functions, side.APIs)
	return nil
}
