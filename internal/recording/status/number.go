package status

import "fmt"

// Count returns a number with about three digits and the suffix k, M or G.
func Count(n float64) string {
	for _, u := range [...]string{"", "k", "M"} {
		if n < 1000 {
			if u == "" {
				return fmt.Sprintf("%.0f", n)
			}
			return fmt.Sprintf("%.1f%s", n, u)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.1fG", n)
}

// Bytes returns a number of bytes in the largest unit that fits.
func Bytes(n uint64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// Times returns "once" or a number of times.
func Times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
