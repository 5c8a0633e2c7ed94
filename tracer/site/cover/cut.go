package cover

// forever is the capacity of an arc that cannot be cut.
const forever = int64(1) << 50

// network is a flow network.
type network struct {
	heads [][]int // arcs from each vertex
	to    []int
	left  []int64 // capacity that is left; arc i^1 is the reverse of arc i
	level []int
	tried []int
}

func newNetwork(vertices int) *network {
	return &network{heads: make([][]int, vertices)}
}

// arc adds an arc and its reverse, and returns the number of the arc.
func (n *network) arc(from, to int, capacity, back int64) int {
	i := len(n.to)
	n.heads[from] = append(n.heads[from], i)
	n.heads[to] = append(n.heads[to], i+1)
	n.to = append(n.to, to, from)
	n.left = append(n.left, capacity, back)
	return i
}

// cut returns the vertices on the source's side of a minimum cut, and its capacity: Dinic's
// algorithm.
func (n *network) cut(source, sink int) (side []bool, capacity int64) {
	for n.search(source, sink) {
		n.tried = make([]int, len(n.heads))
		for {
			pushed := n.push(source, sink, forever)
			if pushed == 0 {
				break
			}
			if capacity += pushed; capacity >= forever {
				return nil, capacity
			}
		}
	}
	side = make([]bool, len(n.heads))
	for v, l := range n.level {
		side[v] = l >= 0
	}
	return side, capacity
}

// search computes the distances from the source.
func (n *network) search(source, sink int) bool {
	n.level = make([]int, len(n.heads))
	for i := range n.level {
		n.level[i] = -1
	}
	n.level[source] = 0
	for queue := []int{source}; len(queue) > 0; queue = queue[1:] {
		for _, a := range n.heads[queue[0]] {
			if v := n.to[a]; n.left[a] > 0 && n.level[v] < 0 {
				n.level[v] = n.level[queue[0]] + 1
				queue = append(queue, v)
			}
		}
	}
	return n.level[sink] >= 0
}

// push sends flow along shortest paths.
func (n *network) push(v, sink int, most int64) int64 {
	if v == sink {
		return most
	}
	for ; n.tried[v] < len(n.heads[v]); n.tried[v]++ {
		a := n.heads[v][n.tried[v]]
		w := n.to[a]
		if n.left[a] <= 0 || n.level[w] != n.level[v]+1 {
			continue
		}
		if sent := n.push(w, sink, min(most, n.left[a])); sent > 0 {
			n.left[a] -= sent
			n.left[a^1] += sent
			return sent
		}
	}
	return 0
}
