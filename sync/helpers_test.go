package pgsync_test

import (
	"errors"

	pgsync "gopgas/sync"
)

func isError(err, want error) bool { return errors.Is(err, want) }

func anyMismatch(errs []error) bool {
	for _, err := range errs {
		if errors.Is(err, pgsync.ErrMismatch) {
			return true
		}
	}
	return false
}
