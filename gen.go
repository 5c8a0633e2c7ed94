// Package rtrace holds the commands that generate code; `make generate` runs them.
package rtrace

//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package tracer -output-dir tracer -output-stem probe -type event -type move_event -type stack_record -type target -type thread -type record_kind -type stack_end -type loss -type operation probe bpf/rtrace.bpf.c -- -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
