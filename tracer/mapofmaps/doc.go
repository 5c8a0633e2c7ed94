// Package mapofmaps changes BPF maps of maps without making the caller wait for the
// kernel's grace periods.
package mapofmaps
