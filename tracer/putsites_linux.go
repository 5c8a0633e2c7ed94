package tracer

import (
	"fmt"

	"rtrace-bpf/tracer/plan"
)

// putSites writes the table of probe sites if the programs find sites by address.
func (k *kernel) putSites(p *plan.Plan) error {
	if p.Mechanisms.Sites != plan.SitesAddress {
		return nil
	}
	for key, packed := range p.Layout.SiteTable() {
		if err := k.objects.Sites.Put(key, packed); err != nil {
			return fmt.Errorf("describe sites: %w", err)
		}
	}
	return nil
}
