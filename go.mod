module rtrace-bpf

go 1.26.0
