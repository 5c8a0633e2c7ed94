package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// devices reads the state of disks, network and screen. What is missing is nil.
type devices struct {
	disks, interfaces   *source
	brightness, voltage *source
	isDisk              map[string]bool // by name
	disksWere           Disks
	networkWas          Network
	seldom              pace
	slower              pace
	driveUsed           uint64
	brightnessIs        uint64
	voltageIs           uint64
	begun               bool
}

// seldomEvery is how often slow or rarely changing values are read.
const seldomEvery = time.Second

func newDevices() *devices {
	d := &devices{isDisk: map[string]bool{}, seldom: pace{least: int64(seldomEvery)}}
	d.disks, _ = openSource("/proc/diskstats", 8192)
	d.interfaces, _ = openSource("/proc/self/net/dev", 4096)
	d.brightness = first("/sys/class/backlight/*/brightness", func(string) bool { return true })
	d.voltage = first("/sys/class/power_supply/*/voltage_now", func(path string) bool {
		kind, err := os.ReadFile(filepath.Dir(path) + "/type")
		return err == nil && string(bytes.TrimSpace(kind)) == "Battery"
	})
	return d
}

// first opens the first file of a pattern for which wanted returns true, or returns nil.
func first(pattern string, wanted func(path string) bool) *source {
	paths, _ := filepath.Glob(pattern) // the pattern is well-formed
	for _, path := range paths {
		if wanted(path) {
			if s, err := openSource(path, 64); err == nil {
				return s
			}
		}
	}
	return nil
}

// disk reports whether a block device is a disk and not a partition or made from other devices:
// it belongs to a device of the machine.
func (d *devices) disk(name string) bool {
	is, known := d.isDisk[name]
	if !known {
		_, err := os.Stat("/sys/block/" + name + "/device")
		is = err == nil
		d.isDisk[name] = is
	}
	return is
}

// read reads what has happened since the last reading.
func (d *devices) read(r *Reading) {
	now := r.Time
	r.Disks, r.Network = Disks{}, Network{}
	d.slower.run(now, spent, func() {
		disks, network := d.disksWere, d.networkWas
		if d.disks != nil {
			if text, err := d.disks.read(); err == nil {
				disks = parseDisks(text, d.disk)
			}
		}
		if d.interfaces != nil {
			if text, err := d.interfaces.read(); err == nil {
				network = parseInterfaces(text)
			}
		}
		if d.begun {
			r.Disks, r.Network = disks.since(&d.disksWere), network.since(&d.networkWas)
		}
		d.disksWere, d.networkWas, d.begun = disks, network, true
	})
	d.seldom.run(now, spent, func() {
		var fs unix.Statfs_t
		if unix.Statfs("/", &fs) == nil {
			d.driveUsed = (fs.Blocks - fs.Bfree) * uint64(fs.Frsize)
		}
		d.brightnessIs, d.voltageIs = d.brightness.number(), d.voltage.number()
	})
	r.DriveUsed, r.Brightness, r.Voltage = d.driveUsed, d.brightnessIs, d.voltageIs
}

// number returns the number in a file, or 0 if it has none.
func (s *source) number() uint64 {
	if s == nil {
		return 0
	}
	text, err := s.once()
	if err != nil {
		return 0
	}
	n, _, _ := number(text)
	return n
}

func (d *devices) Close() {
	for _, s := range []*source{d.disks, d.interfaces, d.brightness, d.voltage} {
		s.Close()
	}
}
