package tracer

import (
	"fmt"
)

// putSites tells the programs the sites if they have to find them by address.
func (k *kernel) putSites(p *Plan) error {
	if p.sites != SitesAddress {
		return nil
	}
	for key, packed := range p.siteTable() {
		if err := k.objects.Sites.Put(key, packed); err != nil {
			return fmt.Errorf("describe sites: %w", err)
		}
	}
	return nil
}
