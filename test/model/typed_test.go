package model

import (
	pgsync "gopgas/sync"
	"gopgas/window"
)

// The functions below let code for any element of the model call the functions of package window.

func fetchAdd[T element](w *window.Window[T], target, at int, v T) (T, error) {
	return window.FetchAdd(w, target, at, v)
}

func swap[T element](w *window.Window[T], target, at int, v T) (T, error) {
	return window.Swap(w, target, at, v)
}

func compareSwap[T element](w *window.Window[T], target, at int, old, v T) (T, error) {
	return window.CompareSwap(w, target, at, old, v)
}

func accumulate[T element](w *window.Window[T], target, at int, src []T, op pgsync.Op) error {
	return window.Accumulate(w, target, at, src, op)
}
