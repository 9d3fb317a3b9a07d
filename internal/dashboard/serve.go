package dashboard

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

//go:embed page
var page embed.FS

// Server answers for a board. Make one with Listen.
type Server struct {
	at   net.Listener
	http *http.Server
	done chan struct{} // closed when it no longer serves
}

// Listen binds address, HOST:PORT, :PORT or PORT; without a host it is the loopback (D1), and port 0 is any that is free. It
// serves nothing yet: requests wait for Serve.
func Listen(address string) (*Server, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return nil, fmt.Errorf("%q: wanted :PORT, or HOST:PORT to be seen from other machines", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	at, err := net.Listen("tcp", net.JoinHostPort(host, port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: port %s is in use by another program; name another one, or :0 for any that is free", address, port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: port %s is for root; name one above 1023: %w", address, port, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is no address of this machine; name one that is, or 0.0.0.0 for all, or none for this machine alone", address, host)
	case err != nil:
		return nil, fmt.Errorf("%s: wanted :PORT or HOST:PORT with a port from 0 (any that is free) to 65535: %w", address, err)
	}
	return &Server{at: at, done: make(chan struct{})}, nil
}

// URL is where the page is. For an address that stands for all of the machine's it names the loopback.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.at.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// Serve begins to answer, in a goroutine of its own. Call it once.
func (s *Server) Serve(b *Board) {
	s.http = &http.Server{Handler: handler(b, s.at.Addr().String()), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(s.at) // it ends by Close
	}()
}

// lastAnswers is how long answers that are under way may take at the end of a job.
const lastAnswers = time.Second

// Close ends the server, whether or not it serves.
func (s *Server) Close() error {
	if s.http == nil {
		return s.at.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	<-s.done
	return nil
}

// handler answers for b at address.
func handler(b *Board, address string) http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]string{"/{$}": "index.html", "/app.js": "app.js", "/draw.js": "draw.js", "/style.css": "style.css"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, page, "page/"+file) })
	}
	mux.HandleFunc("GET /state.json", func(w http.ResponseWriter, _ *http.Request) {
		var body bytes.Buffer
		if err := json.NewEncoder(&body).Encode(b.snapshot()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body.Bytes()) // a client that has gone is no trouble of ours
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", metricsType)
		_, _ = w.Write(b.metrics())
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ours(r.Host, address) {
			http.Error(w, "this server is not "+r.Host, http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:")
		mux.ServeHTTP(w, r)
	})
}

// ours reports whether a Host header can be meant for us (D4): an address, localhost, or any name where all of the network may
// look on anyway.
func ours(host, address string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" || net.ParseIP(host) != nil {
		return true
	}
	at, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(at)
	return ip != nil && !ip.IsLoopback()
}
