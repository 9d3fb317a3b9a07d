package hashmap_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"gopgas/pgas"
	"gopgas/pgas/hashmap"
	"gopgas/pgas/pgastest"
)

// All ranks count words in one map; a word's key is its hash.
func ExampleMap() {
	text := strings.Fields("the map is not the territory and the word is not the thing")
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		m, err := hashmap.New[int64](ctx, w.Team(), len(text))
		if err != nil {
			return err
		}
		for i := w.Rank(); i < len(text); i += w.Size() {
			if _, err := m.Add(xxhash.Sum64String(text[i]), 1); err != nil {
				return err
			}
		}
		different, err := m.Len(ctx) // a fence, too
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			the, _, err := m.Load(xxhash.Sum64String("the"))
			if err != nil {
				return err
			}
			fmt.Println(different, "words,", the, "times the")
		}
		return m.Free(ctx)
	})
	// Output: 8 words, 4 times the
}

// Many keys are added to in one call, whoever has them: over a network they travel together.
func ExampleMap_AddAll() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		m, err := hashmap.New[int64](ctx, w.Team(), 100)
		if err != nil {
			return err
		}
		keys, ones := make([]uint64, 50), make([]int64, 50)
		for i := range keys {
			keys[i], ones[i] = uint64(i%10), 1
		}
		if err := m.AddAll(ctx, keys, ones); err != nil {
			return err
		}
		n, err := m.Len(ctx)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			v, _, err := m.Load(3)
			if err != nil {
				return err
			}
			fmt.Println(n, "keys,", v, "for each")
		}
		return m.Free(ctx)
	})
	// Output: 10 keys, 10 for each
}

// Everybody brings what he has, and nobody needs to know how much it is in all. What is deleted is gone for all.
func ExampleMap_Merge() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		m, err := hashmap.New[int64](ctx, w.Team(), 0)
		if err != nil {
			return err
		}
		keys, ones := make([]uint64, 1000), make([]int64, 1000)
		for i := range keys {
			keys[i], ones[i] = uint64(i+500*w.Rank()), 1 // the two have 500 in common
		}
		if err := m.Merge(ctx, keys, ones); err != nil {
			return err
		}
		if w.Rank() == 0 {
			there, err := m.Delete(700)
			if err != nil {
				return err
			}
			again, err := m.Delete(700)
			if err != nil {
				return err
			}
			fmt.Println(there, again)
		}
		n, err := m.Len(ctx)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(n, "keys")
		}
		return m.Free(ctx)
	})
	// Output:
	// true false
	// 1499 keys
}
