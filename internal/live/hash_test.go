package live

import (
	"math/rand/v2"
	"testing"
)

// Blocks often lie at equal distances. Whatever the seed, their entries must not be far
// from their home slots.
func TestHashOfEqualDistances(t *testing.T) {
	const keys = 4000
	// 1.6 is expected of a random function at the highest load of 76 %.
	const farthest = 2.5
	seeds := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		seed1, seed2 := seeds.Uint64(), seeds.Uint64()|1
		for _, distance := range []uint64{1, 16, 32, 48, 112, 4096, 4112, 1 << 21} {
			table := &Table{seed1: seed1, seed2: seed2}
			for i := range uint64(keys) {
				table.Insert(1, 0x7f12_3456_7010+i*distance, 8, 0)
			}
			sum := 0
			for i := range table.shards {
				for _, s := range table.shards[i].slots {
					if s.state != 0 {
						sum += int(s.state&distMask) - 1
					}
				}
			}
			if mean := float64(sum) / keys; mean > farthest {
				t.Errorf("seeds %#x, %#x, a block every %d bytes: %.1f slots from home on average", seed1, seed2, distance, mean)
			}
		}
	}
}
