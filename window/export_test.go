package window

// Direct reports whether calls use target's part directly, and flushes are instructions.
func Direct[T any](w *Window[T], target int) (part, flush bool) {
	_, n := w.parts[target].direct()
	return n != 0, w.c.direct.Load() != 0
}
