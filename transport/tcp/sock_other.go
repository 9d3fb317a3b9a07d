//go:build !linux

package tcp

import (
	"fmt"

	"gopgas/transport"
)

var errSystem = fmt.Errorf("the tcp NIC: only on Linux: %w", transport.ErrUnsupported)

func available() error { return errSystem }

func readv(int, [][]byte) (int, error) { return 0, errSystem }

func writev(int, [][]byte) (int, error) { return 0, errSystem }

func lowWater(int, int) error { return errSystem }

func unpace(int) (string, error) { return "", errSystem }

func repace(int, string) error { return errSystem }

func notNow(error) bool { return false }
