// Package programs loads the BPF programs that record calls of allocators, with the maps
// that they use, and switches them on and off.
package programs
