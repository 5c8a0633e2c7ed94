package site

import (
	"errors"
	"strings"
	"testing"
)

// TestChooseErrors checks that invalid arguments are errors.
func TestChooseErrors(t *testing.T) {
	one := []byte{0xc3}
	for _, c := range []struct {
		name string
		o    Options
		f    Function
		is   error
		want string
	}{
		{"ifunc", Options{Arch: AMD64}, Function{Name: "memset", Code: one, IFunc: true}, ErrIndirect, "memset"},
		{"arch", Options{}, Function{Code: one}, nil, "arch(0) is not supported"},
		{"no code", Options{Arch: AMD64}, Function{}, nil, "no code"},
		{"wrap", Options{Arch: AMD64}, Function{Entry: ^uint64(0), Code: []byte{1, 2}}, nil, "exceeds"},
		{"argument", Options{Arch: AMD64}, Function{Code: one, Args: []int{6}}, nil, "argument 6"},
		{"argument 8 on the stack", Options{Arch: I386}, Function{Code: one, Args: []int{8}}, nil, "argument 8"},
		{"above 4 GiB", Options{Arch: I386}, Function{Entry: 1<<32 - 1, Code: []byte{0x90, 0xc3}}, nil, "exceeds"},
		{"16-bit jump", Options{Arch: I386}, Function{Code: []byte{0x66, 0xe9, 0, 0}}, ErrNoSite, "refused by the kernel"},
		{"negative", Options{Arch: ARM64}, Function{Code: one, Args: []int{-1}}, nil, "argument -1"},
		{"factors", Options{Arch: AMD64}, Function{Code: one, Args: []int{0}, Factors: [2]int{0, 1}}, nil, "factors [0 1]"},
		{"null", Options{Arch: AMD64}, Function{Code: one, SkipNull: true}, nil, "SkipNull"},
		{"after a call, argument 1", Options{Arch: AMD64}, Function{Code: one, Args: []int{1}, AfterCall: true}, nil, "only its result"},
		{"after a call, return", Options{Arch: AMD64}, Function{Code: one, Args: []int{0}, AfterCall: true, Return: true}, nil, "only its result"},
		{"refused", Options{Arch: AMD64}, Function{Code: []byte{0x0f, 0x0b}}, ErrNoSite, "refused by the kernel"},
		{"refused vector", Options{Arch: AMD64}, Function{Code: []byte{0xc5, 0xf8, 0x77}}, ErrNoSite, "refused"},
		{"undecodable", Options{Arch: AMD64}, Function{Code: []byte{0x06}}, ErrNoSite, "cannot be decoded"},
		{"cut", Options{Arch: ARM64}, Function{Code: one}, ErrNoSite, "cannot be decoded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Choose(c.o, c.f)
			if err == nil {
				t.Fatalf("no error, site %+v", s)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %q is not %q", err, c.is)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not contain %q", err, c.want)
			}
		})
	}
}
