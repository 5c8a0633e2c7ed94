// Package rtrace holds the commands that generate code; `make generate` runs them.
package rtrace

// The second object is for kernels without bpf_loop, the other two are the same
// for 32-bit programs. All have the same maps, settings and programs, so the types
// of the first one serve them, too.

//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package object -output-dir tracer/object -output-stem probe -type event -type move_event -type stack_record -type raw_stack -type target -type thread -type row -type mapping -type record_kind -type stack_end -type loss -type operation -type argument_kind -type unwind_mode -type work_kind -type raw_purpose -type site_program -type pass_role Probe bpf/rtrace.bpf.c -- -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package object -output-dir tracer/object -output-stem bounded -no-global-types Bounded bpf/rtrace.bpf.c -- -DBOUNDED -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64 -go-package object -output-dir tracer/object -output-stem probe32 -no-global-types Probe32 bpf/rtrace.bpf.c -- -DWORD_32 -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64 -go-package object -output-dir tracer/object -output-stem bounded32 -no-global-types Bounded32 bpf/rtrace.bpf.c -- -DBOUNDED -DWORD_32 -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package activity -output-dir tracer/activity -output-stem activity -type activity -type activity_call -type call_rule -type activity_kind -type activity_abi -type activity_loss activity bpf/activity.bpf.c -- -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package activity -output-dir tracer/activity -output-stem files -type activity_file -type file_rule -type file_kind -type file_event files bpf/files.bpf.c -- -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package functions -output-dir tracer/functions -output-stem functions -type call_entry -type call_exit -type call_text -type call_value -type call_site -type call_kind -type call_loss -type call_stack functions bpf/functions.bpf.c -- -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
//go:generate go tool bpf2go -tags linux -target amd64,arm64 -go-package arrival -output-dir tracer/arrival -output-stem arrival -type arrival -type arrival_state arrival bpf/arrival.bpf.c -- -O2 -mcpu=v3 -Ibpf -Wall -Wextra -Werror -Wno-unused-parameter
