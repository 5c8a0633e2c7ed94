// Package host tells what this machine offers a tracer and what this process may do: the
// kernel's features, capabilities, limits, and what a probe costs here.
//
// Features are tested by trying, not by the kernel's version. Some tests put a probe into
// this process or into a child of it: programs that trace call [RunAsChild] first thing
// in main.
package host
