// Package grid has arrays of up to seven dimensions that are spread over a team in blocks. A box of elements is read, written or
// accumulated by global indices in one call, whoever owns them. It is made of a window and its sections, as a program would.
//
//	a, err := grid.New[float64](ctx, w.Team(), []int{400, 400, 400}, grid.Config{Ghost: []int{1, 1, 1}})
//	…
//	box := grid.Box{Lo: []int{0, 10, 10}, Hi: []int{2, 20, 20}}
//	err = a.Get(box, buf) // 2 by 10 by 10 elements, dense, the last dimension quickest
//
// # Terms
//
//   - Shape: how many elements an array has in each dimension.
//   - Parts: how many blocks each dimension is cut into. Together they make the grid of blocks, one for each member of the team.
//   - Block: the elements that one member owns: neighbours in every dimension. It lies in the member's part of the window with the last dimension's
//     elements next to each other (C's order).
//   - Ghost cells: a frame around the block, of its own width in each dimension: copies of others' elements that UpdateGhosts renews.
//   - Box: the elements of an operation: from Lo to before Hi in each dimension, perhaps with steps.
//   - Line: what a box has in one dimension: some indices with equal distances.
//   - Span: what of a line falls into one row of blocks.
//
// # Life of a transfer
//
// A box is verified, and cut in each dimension into spans; each choice of one span of every dimension is an owner's share. Dimensions that follow
// each other without a gap at both ends become one; the two innermost of what is left are a section, and the others count sections. All owners'
// sections go to the window in one call, or in a few if there are very many, so that through a NIC they are under way together in chains.
//
// Put, Get, At, Set and the atomics take no part of the owner and complete as those of a window do: a put is visible after Flush or Fence, a get is
// there on return. They allocate nothing where a box has up to 16 sections, except over a NIC what its window allocates. NB forms return handles. Fill,
// Apply, CopyFrom, CopyBox, UpdateGhosts and pgas.Reduce are collective and begin with a fence.
//
// # Invariants
//
//   - N1: an index has one owner and one place there, and all members compute the same (pure: file layout.go).
//   - N2: the sections of a box hold each of its elements once, in the owner's part and in the caller's slice (pure: file walk.go).
//   - N3: a box that does not fit moves nothing.
//
// # Lock order
//
// There are no locks.
//
// # Limits
//
// Blocks only: what is dealt out cyclically is an Array of package pgas. Each member takes room for the largest block with its frame. At most 1<<31
// elements in a dimension and 1<<46 in a part. Caller's slices are dense. A box whose last dimension has steps, or is narrow,
// travels through a NIC in as many pieces as it has rows.
package grid
