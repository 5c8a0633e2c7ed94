//go:build !linux

package machine

import "os/exec"

func asGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) error { return nil }
