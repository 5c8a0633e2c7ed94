package estimate

// Rate is what one window estimates for the stretch that it stands for. Times are ns since the first
// window opened.
type Rate struct {
	From, To int64   // the window
	Stretch  float64 // length of the stretch
	Blocks   float64 // allocated per second
	Bytes    float64
}

// rates holds the weighted sums of each window. The zero value is ready to use.
type rates struct {
	windows []struct{ blocks, bytes float64 }
}

// add adds an allocation after the records that were observed.
func (r *rates) add(w *Windows, size uint64) {
	if w.weight == 0 {
		return
	}
	for len(r.windows) < len(w.list) {
		r.windows = append(r.windows, struct{ blocks, bytes float64 }{})
	}
	x := &r.windows[len(w.list)-1]
	x.blocks += float64(w.weight)
	x.bytes += float64(w.weight) * float64(size)
}

// of returns the rates. The sums of rate times stretch are the estimates of all groups together.
func (r *rates) of(w *Windows) []Rate {
	delay := w.delay(0)
	out := make([]Rate, 0, len(w.list))
	for i := range w.list {
		x := &w.list[i]
		if i == len(w.list)-1 && !w.settled {
			break // it is still open
		}
		rate := Rate{From: x.from - w.begun, To: x.to - w.begun, Stretch: x.length}
		if i < len(r.windows) {
			times := 1e9 / x.length
			if x.number > 0 {
				times *= x.scale * (1 + delay*x.spent.ratio(0))
			}
			rate.Blocks, rate.Bytes = times*r.windows[i].blocks, times*r.windows[i].bytes
		}
		out = append(out, rate)
	}
	return out
}
