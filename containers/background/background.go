// Package background keeps a deployment's cluster running between commands.
//
// The cluster's service lives as long as the Dagger session that started it. A background
// cluster is a process that keeps its session open; other commands of the same user on the
// same machine join that session and find the cluster running. They talk HTTP over a
// socket in the user's cache.
package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

const (
	// codeInUse: another process runs the deployment's cluster already, or a run works
	// in that one's session.
	codeInUse fault.Code = "DEP-004"
	// codeSocket: the socket of the process that runs a cluster cannot be made.
	codeSocket fault.Code = "DEP-005"
	// codeKilled: a run that worked in the session of a background cluster was killed.
	// The session ended with it, and so did the cluster.
	codeKilled fault.Code = "DEP-007"
)

// Session is what a process needs to join a Dagger session: the port of the dagger
// CLI on the loopback address, and the password for it.
type Session struct {
	Port  int   `json:"port"`
	Token Token `json:"session_token"` // as in the dagger CLI's output
}

// Token is a password; only JSON shows it.
type Token string

// String hides the password.
func (Token) String() string { return "***" }

// GoString hides it from %#v.
func (Token) GoString() string { return "***" }

// version is the version of the protocol between Server and Client.
const version = 1

// Info describes a background cluster to clients. The server sets Version and PID.
type Info struct {
	Version     int     `json:"version"` // first: it says how to read the rest
	Deployment  string  `json:"deployment"`
	Session     Session `json:"session"`
	Node        string  `json:"node"`                  // containers.Cluster.ID of the service
	PID         int     `json:"pid"`                   // of the server
	Background  bool    `json:"background"`            // it is attached to no terminal
	Log         string  `json:"log"`                   // its file; empty without one
	Unpublished bool    `json:"unpublished,omitempty"` // it publishes no port of this machine
	Ends        bool    `json:"ends"`                  // it is about to end
}

// callTimeout bounds calls of the server that wait for nothing.
const callTimeout = 5 * time.Second

// Server shares the session of a background cluster, from Serve to Close.
type Server struct {
	info     Info
	file     string
	own      os.FileInfo // of the socket
	server   *http.Server
	log      *Log
	publish  func(ready func()) error
	once     sync.Once
	ready    chan struct{} // closed once the cluster's ports are published
	done     chan struct{} // closed when the server should end
	end      sync.Once
	cause    error // why; nil: it was told to
	mu       sync.Mutex
	clients  map[*attendance]bool
	departed *sync.Cond
	closed   chan struct{}
	shut     sync.Once
}

type attendance struct {
	pid  int
	work string // "install"; empty for what changes nothing
}

// Serve starts to share a session, whose log is log, at the socket file. publish starts the
// cluster and publishes its ports until the server ends; it calls ready once they accept
// connections. A server that is already there is a fault of class Locked.
func Serve(ctx context.Context, file string, info Info, log *Log, publish func(ready func()) error) (*Server, error) {
	switch other, err := Find(ctx, file); {
	case err != nil:
		return nil, err
	case other != nil:
		return nil, other.Already()
	}
	noSocket := func(err error) error {
		return &fault.Fault{Code: codeSocket, Class: fault.Preflight, Op: "share the session", Err: err,
			Fix: "make the user's cache writable, or name another directory, with a short path, with SLIPWAY_CACHE"}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, noSocket(err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, noSocket(err) // left by a server that was killed
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", file)
	if err != nil {
		return nil, noSocket(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(file, 0o600)
	own, statErr := os.Stat(file)
	if err := errors.Join(err, statErr); err != nil {
		return nil, errors.Join(noSocket(err), listener.Close())
	}
	s := &Server{info: info, file: file, own: own, log: log, publish: publish,
		ready: make(chan struct{}), done: make(chan struct{}), closed: make(chan struct{}), clients: map[*attendance]bool{}}
	s.departed = sync.NewCond(&s.mu)
	s.info.Version, s.info.PID = version, os.Getpid()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.now()) })
	mux.HandleFunc("GET /attend", s.attend)
	mux.HandleFunc("POST /publish", s.published)
	mux.HandleFunc("POST /stop", s.stop)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: callTimeout}
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.End(fmt.Errorf("serve %s: %w", file, err))
		}
	}()
	return s, nil
}

// Done is closed when the server should end; Cause then says why.
func (s *Server) Done() <-chan struct{} { return s.done }

// Cause is why the server ends; nil if it was told to.
func (s *Server) Cause() error { return s.cause }

// End makes the server end. The first cause counts.
func (s *Server) End(cause error) {
	s.end.Do(func() {
		s.cause = cause
		close(s.done)
	})
}

// Found reports whether clients can still find the server: its socket is in place.
func (s *Server) Found() bool {
	now, err := os.Stat(s.file)
	return err == nil && os.SameFile(now, s.own)
}

// Publish starts the cluster and publishes its ports, once, and returns when they
// accept connections or the server ends.
func (s *Server) Publish(ctx context.Context) error {
	s.once.Do(func() {
		go func() {
			var ready sync.Once
			err := s.publish(func() { ready.Do(func() { close(s.ready) }) })
			s.End(err)
		}()
	})
	select {
	case <-s.ready:
		return nil
	case <-s.done:
		if s.cause != nil {
			return s.cause
		}
		return errEnds
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errEnds = errors.New("the process that keeps the cluster running ends")

// Drain accepts no more runs, and returns when those that work in the session have
// ended, or with ctx.
func (s *Server) Drain(ctx context.Context) {
	s.End(nil)
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock() // not between a look at ctx and the wait
		defer s.mu.Unlock()
		s.departed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.working() != nil && ctx.Err() == nil {
		s.departed.Wait()
	}
}

// Close tells those who wait for the end of the server that it has come: the
// cluster is stopped.
func (s *Server) Close() error {
	s.End(nil)
	var err error
	s.shut.Do(func() {
		if s.Found() {
			err = os.Remove(s.file)
		}
		close(s.closed)
	})
	return errors.Join(err, s.server.Close())
}

func (s *Server) now() Info {
	info := s.info
	select {
	case <-s.done:
		info.Ends = true
	default:
	}
	return info
}

// Working names a run that works in the session; empty for none.
func (s *Server) Working() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.working(); a != nil {
		return a.String()
	}
	return ""
}

// Does reports whether a run that does work, such as "destroy", works in the session.
func (s *Server) Does(work string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.clients {
		if a.work == work {
			return true
		}
	}
	return false
}

func (a *attendance) String() string { return fmt.Sprintf("process %d (%s)", a.pid, a.work) }

// working is a run that works in the session; nil for none. The caller has the lock.
func (s *Server) working() *attendance {
	for a := range s.clients {
		if a.work != "" {
			return a
		}
	}
	return nil
}

// protocol is what the connection of who works in the session is after the request: the
// server sends the engine's log, and the other side says bye in the end.
const (
	protocol = "slipway-session"
	bye      = "bye"
)

// attend sends the engine's log to a client until that one leaves. A run that is
// gone without a word takes the session with it, as when it had one of its own:
// its containers would go on otherwise, and hold the deployment's lock.
func (s *Server) attend(w http.ResponseWriter, r *http.Request) {
	pid, _ := strconv.Atoi(r.FormValue("pid"))
	a := &attendance{pid: pid, work: r.FormValue("work")}
	s.mu.Lock() // who is about to end the server sees the run, or the run sees the end
	ends := a.work != "" && s.now().Ends
	if !ends {
		s.clients[a] = true
	}
	s.mu.Unlock()
	if ends {
		refuse(w, &fault.Fault{Code: codeInUse, Class: fault.Locked, Op: "join the cluster",
			Fix: "run the same command again", Err: fmt.Errorf("process %d, which keeps it running, is about to end", s.info.PID)})
		return
	}
	left := true
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clients, a)
		s.departed.Broadcast()
		if a.work != "" && !left {
			s.End(&fault.Fault{Code: codeKilled, Class: fault.Cancelled, Op: "run the background cluster",
				Fix: "run the same command again: finished steps are kept", Err: fmt.Errorf("%s was killed while it worked on it", a)})
		}
	}()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	lines := s.log.follow()
	defer s.log.forget(lines)
	gone := make(chan bool, 1)
	go func() {
		said, _ := io.ReadAll(io.LimitReader(conn, int64(len(bye))))
		_ = conn.Close() // a write to it ends
		gone <- string(said) == bye
	}()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
	for {
		select {
		case text := <-lines:
			_, _ = conn.Write(text) // one that fails is followed by gone
		case left = <-gone:
			return
		case <-s.closed:
			_ = conn.Close()
			return
		}
	}
}

func (s *Server) published(w http.ResponseWriter, r *http.Request) {
	if err := s.Publish(r.Context()); err != nil {
		refuse(w, err)
	}
}

// stop ends the server unless a run works in its session.
func (s *Server) stop(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if busy := s.working(); busy != nil {
		refuse(w, &fault.Fault{Code: codeInUse, Class: fault.Locked, Op: "stop the cluster",
			Fix: "wait until it has ended, or interrupt it, then run again: slipway cluster --stop",
			Err: fmt.Errorf("%s works on it", busy)})
		return
	}
	s.End(nil)
}

func refuse(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusConflict)
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		_ = json.NewEncoder(w).Encode(f)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
}
