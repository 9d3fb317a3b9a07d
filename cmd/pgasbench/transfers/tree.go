package transfers

// tree is a balanced binary search tree of addresses and counts (AVL), to compare the usage table with: it is what the
// paper's authors tried beside their hash table. The zero tree is empty.
type tree struct {
	root  *treeNode
	nodes int
}

type treeNode struct {
	addr        uint64
	uses        uint32
	height      int8
	left, right *treeNode
}

// use counts a use of addr and returns how many there were, this one included.
func (t *tree) use(addr uint64) uint32 {
	for n := t.root; n != nil; {
		switch {
		case addr < n.addr:
			n = n.left
		case addr > n.addr:
			n = n.right
		default:
			n.uses++
			return n.uses
		}
	}
	t.root = t.root.insert(addr)
	t.nodes++
	return 1
}

func (n *treeNode) insert(addr uint64) *treeNode {
	if n == nil {
		return &treeNode{addr: addr, uses: 1, height: 1}
	}
	if addr < n.addr {
		n.left = n.left.insert(addr)
	} else {
		n.right = n.right.insert(addr)
	}
	return n.balance()
}

func (n *treeNode) tall() int8 {
	if n == nil {
		return 0
	}
	return n.height
}

func (n *treeNode) measure() { n.height = 1 + max(n.left.tall(), n.right.tall()) }

// balance makes the heights of both sides differ by one at most, where they differ by two.
func (n *treeNode) balance() *treeNode {
	n.measure()
	switch d := n.left.tall() - n.right.tall(); {
	case d > 1:
		if n.left.left.tall() < n.left.right.tall() {
			n.left = n.left.rotateLeft()
		}
		return n.rotateRight()
	case d < -1:
		if n.right.right.tall() < n.right.left.tall() {
			n.right = n.right.rotateRight()
		}
		return n.rotateLeft()
	}
	return n
}

func (n *treeNode) rotateLeft() *treeNode {
	r := n.right
	n.right, r.left = r.left, n
	n.measure()
	r.measure()
	return r
}

func (n *treeNode) rotateRight() *treeNode {
	l := n.left
	n.left, l.right = l.right, n
	n.measure()
	l.measure()
	return l
}
