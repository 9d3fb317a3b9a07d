package transport

import (
	"errors"
	"io"
	"syscall"
)

// LifeOf is Lives; where nobody tells nothing is known.
func (c *Config) LifeOf(rank int) (lives, known bool) {
	if c.Lives == nil {
		return false, false
	}
	return c.Lives(rank)
}

// Spares reports whether err is a refusal of a rank whose process is known to live: nobody takes the connection there, or it was cut
// off before it was one. So answers the kernel for a process that has ended, and for one that lives, too: whose queue of
// callers is full, which does not listen yet, or which has cut off a caller for whom it had no room.
func (c *Config) Spares(rank int, err error) bool {
	lives, known := c.LifeOf(rank)
	return known && lives && refused(err)
}

// refused reports whether err is what the end of a process and a lack of room have in common.
func refused(err error) bool {
	for _, e := range [...]error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
