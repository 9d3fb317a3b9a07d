package pmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Environment variables by which a launcher tells a rank where to speak.
const (
	EnvFD   = "PMI_FD"   // an inherited stream socket
	EnvPort = "PMI_PORT" // host:port to dial instead; then EnvID says who this is
	EnvRank = "PMI_RANK"
	EnvSize = "PMI_SIZE"
	EnvID   = "PMI_ID"
)

// Alone is the end of errors about these variables: what whoever wants no launcher does, so that none of them is left.
const Alone = "unset " + EnvFD + ", " + EnvPort + ", " + EnvID + ", " + EnvRank + " and " + EnvSize + " to run it alone"

// What pgasrun adds to the protocol.
const (
	// EnvJob names the job. Where it equals the name of the key-value space, the launcher is pgasrun; otherwise it is left
	// over from an outer one.
	EnvJob = "PGAS_JOB"
	// SecretKey is published before the start: SecretSize random bytes as hexadecimal text.
	SecretKey  = "pgas-secret"
	SecretSize = 32
)

// ErrSpent: the descriptor of PMI_FD was taken over by a Connect that failed, so that there is no other way to the launcher. Match with errors.Is.
var ErrSpent = errors.New("the launcher's descriptor is used up")

// Connect finds the launcher by the environment that lookup reads, and begins the conversation. It takes over the
// descriptor of PMI_FD: a second Connect of the same process fails. Where the first one did, too, its error wraps ErrSpent if it had taken it.
func Connect(ctx context.Context, lookup func(string) (string, bool)) (*Client, error) {
	if fd, ok := lookup(EnvFD); ok {
		return connectFD(ctx, fd, lookup)
	}
	if port, ok := lookup(EnvPort); ok {
		return connectPort(ctx, port, lookup)
	}
	return nil, fmt.Errorf("neither %s nor %s is set: not started by a PMI launcher", EnvFD, EnvPort)
}

func connectFD(ctx context.Context, text string, lookup func(string) (string, bool)) (*Client, error) {
	fd, err := number(EnvFD, text, true)
	if err != nil {
		return nil, err
	}
	rank, err := envNumber(EnvRank, lookup)
	if err != nil {
		return nil, err
	}
	size, err := envNumber(EnvSize, lookup)
	if err != nil {
		return nil, err
	}
	if err := checkRank(rank, size); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // the descriptor stays for who tries again
		return nil, fmt.Errorf("begin PMI with the launcher: %w", context.Cause(ctx))
	}
	conn, err := Adopt(fd)
	if err != nil {
		return nil, fmt.Errorf("%s=%d: %w; these variables belong to another process (a parent's?): start this program "+
			"by the launcher itself, or %s", EnvFD, fd, err, Alone)
	}
	c, err := begin(ctx, NewClient(conn, rank, size))
	if err != nil {
		return nil, spent{err}
	}
	job, _ := lookup(EnvJob)
	c.extended = job != "" && job == c.KVSName()
	return c, nil
}

// spent is an error that is ErrSpent, too, and does not say so.
type spent struct{ error }

func (e spent) Unwrap() []error { return []error{e.error, ErrSpent} }

func connectPort(ctx context.Context, addr string, lookup func(string) (string, bool)) (*Client, error) {
	id, err := envNumber(EnvID, lookup)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("reach the launcher at %s=%s: %w; start the program by a launcher that runs, or %s", EnvPort, addr, err, Alone)
	}
	c := NewClient(conn, 0, 0)
	if err := c.greet(ctx, id); err != nil {
		conn.Close()
		return nil, fmt.Errorf("greet the launcher at %s=%s: %w", EnvPort, addr, err)
	}
	return begin(ctx, c)
}

// greet says who we are where the server cannot know it from the descriptor. The server sends four lines; rank
// and size are in those after the first.
func (c *Client) greet(ctx context.Context, id int) error {
	if _, err := c.call(ctx, Msg("initack", "pmiid", strconv.Itoa(id)), "initack"); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	for range 3 {
		m, err := c.read()
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for _, f := range m.Fields {
			n, err := strconv.Atoi(f.Value)
			switch {
			case f.Name != "rank" && f.Name != "size":
			case err != nil:
				return fmt.Errorf("%w: %s=%s", ErrMalformed, f.Name, clip(f.Value))
			case f.Name == "rank":
				c.rank = n
			default:
				c.size = n
			}
		}
	}
	return checkRank(c.rank, c.size)
}

func begin(ctx context.Context, c *Client) (*Client, error) {
	if err := c.Init(ctx); err != nil {
		c.conn.Close()
		return nil, err
	}
	return c, nil
}

// Adopt makes a connection of an inherited stream socket. The descriptor's number is free afterwards and the
// connection is close-on-exec. A number that is not an open stream socket is an error and is left alone.
func Adopt(fd int) (net.Conn, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not an open socket (%w)", fd, err)
	}
	if kind != unix.SOCK_STREAM {
		return nil, fmt.Errorf("descriptor %d is a socket of type %d, wanted a stream", fd, kind)
	}
	syscall.CloseOnExec(fd) // before anything can fork
	f := os.NewFile(uintptr(fd), "launcher")
	defer f.Close()
	conn, err := net.FileConn(f) // a duplicate, close-on-exec
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return conn, nil
}

// mostRanks bounds a job. The number comes from the environment, or from whoever answers, and tables of that length are made before anybody
// else has confirmed it: what is beyond all machines would take the memory of this one.
const mostRanks = 1 << 20

func checkRank(rank, size int) error {
	if size > mostRanks {
		return fmt.Errorf("the launcher says %d ranks, which cannot be: at most %d can; start this program by a launcher that works, or %s", size, mostRanks, Alone)
	}
	if size < 1 || rank < 0 || rank >= size {
		return fmt.Errorf("the launcher says rank %d of %d, which cannot be; start this program by a launcher that works, or %s", rank, size, Alone)
	}
	return nil
}

func envNumber(name string, lookup func(string) (string, bool)) (int, error) {
	v, ok := lookup(name)
	return number(name, v, ok)
}

func number(name, v string, set bool) (int, error) {
	if !set {
		return 0, fmt.Errorf("%s is not set although other PMI variables are; start this program by a launcher that sets it, or %s", name, Alone)
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%s: wanted a number, 0 or more; start this program by a launcher that sets it right, or %s", name, clip(v), Alone)
	}
	return n, nil
}
