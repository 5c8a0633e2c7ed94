// Package budget decides when a process is recorded, so that recording costs it no more
// than a share of its processor time. It knows no probes and no clock: it computes from
// readings that it is given.
//
// Time is divided into stretches. Each stretch is a whole number of equal slots, and one of
// them, chosen at random, is the window in which the process is recorded. Each moment of
// the stretch is in the window with the same probability, so a call in a window stands for
// as many calls as the stretch has slots: its weight. Sums of weights are unbiased, whatever
// the process does, because length and place of a window are fixed before it opens.
//
// A window that becomes more expensive than planned may be closed early, at random: a coin
// decides when the planned cost is spent. If the window stays open, its calls count double
// from then on. So the weights stay unbiased.
package budget
