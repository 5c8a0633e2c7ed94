package swapevents

import (
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/linux/machine"
)

// systemOf makes the message of a reading.
func systemOf(r *machine.Reading) *swap.System {
	t := &r.Target
	return &swap.System{
		Frequencies: append([]float32(nil), r.Frequencies...), Loads: append([]float32(nil), r.Loads...), MemoryUsed: r.MemoryUsed,
		Target: swap.SystemProcess{
			SystemLoad: swap.SystemLoad{ID: int32(t.ID), Percent: t.Percent},
			Virtual:    t.Virtual, Resident: t.Resident, Shared: t.Shared, PSS: t.PSS, Threads: loadsOf(t.Threads),
		},
		Others: loadsOf(r.Others),
		Figures: map[string]uint64{
			"total_used_drive_mb": r.DriveUsed >> 20,
			"disk_reads":          r.Disks.Reads, "disk_sectors_read": r.Disks.BytesRead,
			"disk_writes": r.Disks.Writes, "disk_sectors_written": r.Disks.BytesWritten,
			"network_send": r.Network.Sent, "network_receive": r.Network.Received,
			"brightness": r.Brightness, "voltage": r.Voltage,
		},
	}
}

func loadsOf(list []machine.Load) []swap.SystemLoad {
	out := make([]swap.SystemLoad, len(list))
	for i, l := range list {
		out[i] = swap.SystemLoad{ID: int32(l.ID), Percent: l.Percent}
	}
	return out
}
