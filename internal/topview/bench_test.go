package topview

import (
	"fmt"
	"testing"
)

// BenchmarkRefresh measures a refresh of the screen with 10,000 call sites, without the engine.
func BenchmarkRefresh(b *testing.B) {
	for _, by := range []By{BySite, ByFunction, BySize} {
		b.Run(string(by), func(b *testing.B) {
			s := newScene()
			m := New(s, Options{By: by, Order: OrderLive})
			for i := range 10_000 {
				s.places[i] = Place{Function: fmt.Sprintf("function_%d", i%2000), File: "/src/file.c", Line: i, Library: "/bin/server", Callers: []string{"main"}}
				s.alloc(i, 1, 3, uint64(16+i))
			}
			now := s.tick()
			for b.Loop() {
				next := *now
				now = &next
				now.Elapsed += 1e9
				m.Update(now, false)
				m.View(200, 60)
			}
		})
	}
}
