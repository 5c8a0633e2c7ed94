// Package mapofmaps changes BPF maps whose values are maps without waiting for the
// kernel's grace periods.
package mapofmaps
