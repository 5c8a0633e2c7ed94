package governor

import "time"

// rate measures how many calls there are in a period, and compares them with a limit.
type rate struct {
	limit uint64 // calls per second; 0 for no limit
	began uint64 // when the period began
	taken uint64 // calls in the period
}

// restart begins a period.
func (r *rate) restart(now uint64) { r.began, r.taken = now, 0 }

// over reports whether the period lasts a second or longer.
func (r *rate) over(now uint64) bool { return now-r.began >= uint64(time.Second) }

// exceeded reports whether the period has more calls than the limit allows in a second.
func (r *rate) exceeded() bool { return r.limit != 0 && r.taken > r.limit }

// met reports whether the period is long enough for its calls to stay within the limit.
func (r *rate) met(now uint64) bool {
	needed := time.Duration(float64(r.taken) / float64(r.limit) * float64(time.Second))
	return now-r.began >= uint64(needed)
}
