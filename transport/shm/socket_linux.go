package shm

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The exchange over the socket is one packet each way. The request is requestLen bytes: version, seven zeros,
// the inode, the secret. The answer is one byte, which carries the descriptor when it is answerHere.
const (
	requestLen  = 32
	answerHere  = 1
	answerGone  = 2 // freed, or never there
	answerFiles = 3 // the owner has no descriptor left to copy it
)

// A peer of the same user that connects and says nothing is dropped after serveSeconds, so that it delays the
// next by no more. A mapper waits askSeconds, longer than a busy owner takes to run its server.
const (
	serveSeconds = 1
	askSeconds   = 5
)

func socketName(id uint64) string { return fmt.Sprintf("@gopgas-shm-%016x", id) }

// server hands descriptors to peers of the same user who know an object's secret, one peer at a time.
type server struct {
	lend func(ino uint64, secret []byte) (fd int, answer byte) // fd is the server's to close

	f    *os.File // the listening socket, in the runtime's poller
	done chan struct{}
}

// listen starts a server. It fails where there are no abstract sockets or no descriptors.
func listen(id uint64, lend func(uint64, []byte) (int, byte)) (*server, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("unix socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: socketName(id)}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bind %s: %w", socketName(id), err)
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen on %s: %w", socketName(id), err)
	}
	s := &server{lend: lend, f: os.NewFile(uintptr(fd), socketName(id)), done: make(chan struct{})}
	raw, err := s.f.SyscallConn()
	if err != nil {
		s.f.Close()
		return nil, fmt.Errorf("listen on %s: %w", socketName(id), err)
	}
	go func() {
		defer close(s.done)
		for s.next(raw.Read) == nil {
		}
	}()
	return s, nil
}

// close ends the server and waits for the peer it serves, which takes serveSeconds at most.
func (s *server) close() {
	s.f.Close()
	<-s.done
}

// next serves one peer. Its error means that the socket was closed.
func (s *server) next(read func(func(uintptr) bool) error) error {
	conn := -1
	err := read(func(fd uintptr) bool {
		var err error
		conn, _, err = unix.Accept4(int(fd), unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) {
			// The peer stays in the queue, so this would be tried again at once: let others give back first.
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 20e6}, nil)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if err != nil || conn < 0 {
		return err
	}
	defer unix.Close(conn)
	s.serve(conn)
	return nil
}

func (s *server) serve(conn int) {
	if sameUser(conn) != nil || setTimeouts(conn, serveSeconds) != nil {
		return
	}
	var req [requestLen + 1]byte // one more, to notice a longer packet
	n, _, err := recv(conn, req[:], nil)
	if err != nil || n != requestLen || binary.LittleEndian.Uint64(req[:]) != tokenVersion {
		return
	}
	fd, answer := s.lend(binary.LittleEndian.Uint64(req[8:]), req[16:requestLen])
	var rights []byte
	if answer == answerHere {
		defer unix.Close(fd)
		rights = unix.UnixRights(fd)
	}
	// A peer that has gone away needs no answer.
	_ = retry(func() error { return unix.Sendmsg(conn, []byte{answer}, rights, nil, unix.MSG_NOSIGNAL) })
}

// ask fetches the descriptor of t from its owner.
func ask(t token) (int, error) {
	conn, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("unix socket: %w", err)
	}
	defer unix.Close(conn)
	if err := setTimeouts(conn, askSeconds); err != nil {
		return -1, err
	}
	name := socketName(t.sock)
	err = retry(func() error { return unix.Connect(conn, &unix.SockaddrUnix{Name: name}) })
	if errors.Is(err, unix.ECONNREFUSED) {
		return -1, fmt.Errorf("connect to %s: %w: the owner has ended or is in another network namespace", name, err)
	}
	if err != nil {
		return -1, fmt.Errorf("connect to %s: %w", name, err)
	}
	// The name of a dead owner is free to take: nobody else is told the secret.
	if err := sameUser(conn); err != nil {
		return -1, err
	}
	req := binary.LittleEndian.AppendUint64(make([]byte, 0, requestLen), tokenVersion)
	req = binary.LittleEndian.AppendUint64(req, t.ino)
	req = append(req, t.nonce[:]...)
	if err := retry(func() error { return unix.Sendmsg(conn, req, nil, nil, unix.MSG_NOSIGNAL) }); err != nil {
		return -1, fmt.Errorf("ask %s: %w", name, err)
	}
	return receiveFile(conn, name)
}

// receiveFile takes the owner's answer, and closes whatever it carries beyond one descriptor.
func receiveFile(conn int, name string) (int, error) {
	var answer [2]byte
	oob := make([]byte, unix.CmsgSpace(4*4))
	n, oobn, err := recv(conn, answer[:], oob)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return -1, fmt.Errorf("ask %s: no answer in %d s", name, askSeconds)
	case err != nil:
		return -1, fmt.Errorf("ask %s: %w", name, err)
	}
	var fds []int
	if msgs, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
		for i := range msgs {
			if got, err := unix.ParseUnixRights(&msgs[i]); err == nil {
				fds = append(fds, got...)
			}
		}
	}
	if n == 1 && answer[0] == answerHere && len(fds) == 1 {
		return fds[0], nil
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	switch {
	case n == 0:
		return -1, fmt.Errorf("ask %s: the owner refused the connection", name)
	case answer[0] == answerGone:
		return -1, fmt.Errorf("ask %s: the memory is freed", name)
	case answer[0] == answerFiles:
		return -1, fmt.Errorf("ask %s: the owner has no file descriptor left (ulimit -n)", name)
	case answer[0] == answerHere && len(fds) == 0:
		return -1, fmt.Errorf("ask %s: the descriptor did not arrive: %w", name, unix.EMFILE)
	}
	return -1, fmt.Errorf("ask %s: answer %d of %d bytes with %d descriptors", name, answer[0], n, len(fds))
}

// recv receives one packet; descriptors in it are closed on exec.
func recv(conn int, p, oob []byte) (n, oobn int, err error) {
	err = retry(func() error {
		n, oobn, _, _, err = unix.Recvmsg(conn, p, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	return n, oobn, err
}

// sameUser returns an error unless the other end of conn is a process of this user.
func sameUser(conn int) error {
	cred, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("credentials of the peer: %w", err)
	}
	if own := uint32(os.Geteuid()); cred.Uid != own {
		return fmt.Errorf("the peer is user %d, this process is user %d", cred.Uid, own)
	}
	return nil
}

// setTimeouts bounds every later call on a blocking socket.
func setTimeouts(conn int, seconds int64) error {
	tv := unix.NsecToTimeval(seconds * 1e9)
	for _, opt := range [...]int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(conn, unix.SOL_SOCKET, opt, &tv); err != nil {
			return fmt.Errorf("set a socket's timeout: %w", err)
		}
	}
	return nil
}

// sameSecret compares in a time that does not depend on the bytes.
func sameSecret(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }
