package algo

import (
	"cmp"
	"context"
	"slices"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	"gopgas/window"
)

// Sort sorts all elements of a in ascending order, by index, whatever its layout. NaNs come first. Collective over a's team; it is a Fence before
// and after. It allocates: see the package's limits.
//
// A sample sort (Frazer and McKellar 1970) by regular sampling (Shi and Schaeffer 1992): each of p members sorts its elements, of which about
// all travel twice, and merges what has come; members agree on splitters by an all-gather of p samples of each, which bounds the members that
// it is good for to some thousands.
func Sort[T cmp.Ordered](ctx context.Context, a *pgas.Array[T]) error {
	return sorted(ctx, a, slices.Sort[[]T], cmp.Compare[T])
}

// SortFunc is Sort in the order that compare gives, as slices.SortFunc takes it: negative where x comes before y. It is the same function on all
// members, and a strict weak ordering; elements for which it is 0 come in no particular order.
func SortFunc[T any](ctx context.Context, a *pgas.Array[T], compare func(x, y T) int) error {
	return a.Team().Guard("sort", func() error {
		return sorted(ctx, a, func(s []T) { slices.SortFunc(s, compare) }, compare)
	})
}

// sorted is a sort whose local part is sortLocal.
func sorted[T any](ctx context.Context, a *pgas.Array[T], sortLocal func([]T), compare func(x, y T) int) error {
	const op = "sort"
	t := a.Team()
	if err := a.Fence(ctx); err != nil {
		return t.Abandon(op, err)
	}
	local := a.Local()
	sortLocal(local)
	b, err := deal(ctx, t, local, compare)
	if err != nil {
		return err
	}
	bucket := b.box.Local()[:b.begins[len(b.begins)-1]]
	bucket = merged(bucket, make([]T, len(bucket)), b.begins, compare)
	if err = a.Put(b.first, bucket); err == nil {
		err = a.Fence(ctx)
	}
	if err != nil {
		return t.AbandonMade(ctx, op, err, b.box.Free)
	}
	return t.AbandonEnd(ctx, op, b.box.Free(ctx))
}

// buckets are the elements of an array on their way: this member's bucket has arrived.
type buckets[T any] struct {
	box    *window.Window[T] // a bucket on each member
	begins []int             // of the runs in this member's, and behind the last one its end
	first  int               // the index in the array of this member's first one
}

// deal puts every member's elements, which are sorted, into the buckets that they belong to.
func deal[T any](ctx context.Context, t *pgas.Team, local []T, compare func(x, y T) int) (*buckets[T], error) {
	p, me := t.Size(), t.Rank()
	by, err := agree(ctx, t, local, compare)
	if err != nil {
		return nil, err
	}
	at := cuts(local, me, p, by, compare)
	give := make([]int, p) // how many of this member's elements are for each bucket
	for b := range give {
		give[b] = at[b+1] - at[b]
	}
	offset, sizes, take := make([]int, p), make([]int, p), make([]int, p)
	if err := coll.ExScan(ctx, t, offset, give, pgsync.Sum); err != nil {
		return nil, err
	}
	if err := pgsync.AllReduce(ctx, t, sizes, give, pgsync.Sum); err != nil {
		return nil, err
	}
	if err := coll.AllToAll(ctx, t, take, give); err != nil {
		return nil, err
	}
	box, err := window.Allocate[T](ctx, t, slices.Max(sizes))
	if err != nil {
		return nil, err
	}
	b := &buckets[T]{box: box, begins: make([]int, p+1)}
	for m := range p {
		b.begins[m+1] = b.begins[m] + take[m]
		if m < me {
			b.first += sizes[m]
		}
	}
	for i := range p { // beginning with the next member's, so that not all put to the same one
		m := (me + 1 + i) % p
		if err := box.Put(m, offset[m], local[at[m]:at[m+1]]); err != nil {
			return nil, t.AbandonMade(ctx, "sort", err, box.Free)
		}
	}
	if err := box.Fence(ctx); err != nil {
		return nil, t.AbandonMade(ctx, "sort", err, box.Free)
	}
	return b, nil
}

// agree returns the splitters, the same on all members.
func agree[T any](ctx context.Context, t *pgas.Team, local []T, compare func(x, y T) int) ([]sample[T], error) {
	p := t.Size()
	places := samplePlaces(len(local), p)
	values := make([]T, len(places))
	for i, place := range places {
		values[i] = local[place]
	}
	counts := make([]int, p)
	if err := pgsync.AllGather(ctx, t, counts, []int{len(local)}); err != nil {
		return nil, err
	}
	var samples []sample[T]
	lengths := make([]int, p)
	for m, n := range counts {
		lengths[m] = min(n, p)
		for _, place := range samplePlaces(n, p) {
			samples = append(samples, sample[T]{member: m, place: place})
		}
	}
	all := make([]T, len(samples))
	if err := coll.AllGatherV(ctx, t, all, lengths, values); err != nil {
		return nil, err
	}
	for i, v := range all {
		samples[i].value = v
	}
	return splitters(samples, counts, p, compare), nil
}
