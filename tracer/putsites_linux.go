package tracer

import (
	"fmt"

	"rtrace-bpf/tracer/plan"
)

// putSites tells the programs the sites if they have to find them by address.
func (k *kernel) putSites(p *plan.Plan) error {
	if p.Sites != plan.SitesAddress {
		return nil
	}
	for key, packed := range p.SiteTable() {
		if err := k.objects.Sites.Put(key, packed); err != nil {
			return fmt.Errorf("describe sites: %w", err)
		}
	}
	return nil
}
