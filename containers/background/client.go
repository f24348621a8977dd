package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// Client is a background cluster as another process sees it.
type Client struct {
	Info
	http *http.Client
}

// Find returns the background cluster at the socket file, nil if there is none. It waits
// up to endLimit for one that is about to end.
func Find(ctx context.Context, file string) (*Client, error) {
	if info, err := os.Stat(file); err != nil || info.Mode().Type() != fs.ModeSocket {
		return nil, nil
	}
	c := &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", file)
		},
		DisableKeepAlives: true,
	}}}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.call(limited, http.MethodGet, "/info", nil, &c.Info)
	switch {
	case nobody(err):
		return nil, nil // it was killed, or has just ended
	case err != nil:
		return nil, fmt.Errorf("ask the process that keeps the cluster running, at %s: %w", file, err)
	case c.Version != version:
		return nil, &fault.Fault{Code: codeInUse, Class: fault.Locked, Op: "join the cluster",
			Fix: fmt.Sprintf("end that process: kill %d", c.PID),
			Err: fmt.Errorf("the cluster of deployment %s is kept running by another version of slipway (process %d)", c.Deployment, c.PID)}
	case c.Ends:
		return nil, c.awaitEnd(ctx)
	}
	return c, nil
}

// nobody reports whether err says that no process listens on a socket, or that it has just closed
// the connection, as it does once the cluster has stopped. For a connection that was closed before
// the request was sent, net/http has an error of its own, which it does not export.
func nobody(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		err != nil && strings.Contains(err.Error(), "server closed idle connection")
}

// endLimit is how long Find waits for a server that is about to end: the cluster stops in a
// few seconds, but a run in its session may take any time.
const endLimit = 30 * time.Second

// awaitEnd returns when the server is gone, or after endLimit.
func (c *Client) awaitEnd(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	err := c.untilGone(limited, func() error { return nil })
	if ctx.Err() == nil && limited.Err() != nil {
		return &fault.Fault{Code: codeInUse, Class: fault.Locked, Op: "join the cluster",
			Fix: "wait until it has ended; or end the run that it waits for",
			Err: fmt.Errorf("process %d, which ran the cluster of deployment %s, is about to end; waited %s for it", c.PID, c.Deployment, endLimit)}
	}
	return err
}

// untilGone calls do while it attends, and returns when the server is gone.
func (c *Client) untilGone(ctx context.Context, do func() error) error {
	conn, err := c.attend(ctx, "")
	if err == nil {
		defer func() { _ = conn.Close() }() // it may have ended
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		err = do()
	}
	if nobody(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, conn) // it ends with the server
	return context.Cause(ctx)
}

// Already is the fault of a second background cluster; nil for a nil client.
func (c *Client) Already() error {
	if c == nil {
		return nil
	}
	where := "in another terminal"
	if c.Background {
		where = "in the background"
	}
	return &fault.Fault{Code: codeInUse, Class: fault.Locked, Op: "run the cluster",
		Fix: "use it as it is: commands find it; or end it: slipway cluster --stop",
		Err: fmt.Errorf("the cluster of deployment %s runs %s already (process %d)", c.Deployment, where, c.PID)}
}

// Attend begins to work in the session: what the engine logs meanwhile goes to log, which
// is written to by one goroutine. work names a run that changes something, such as
// "install"; it is empty for what only looks. The caller calls leave at its end.
func (c *Client) Attend(ctx context.Context, work string, log io.Writer) (leave func(), err error) {
	conn, err := c.attend(ctx, work)
	if err != nil {
		return nil, err
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(log, conn) // it ends with the server, or with leave
	}()
	return func() {
		_, _ = io.WriteString(conn, bye) // an error means that the server is gone
		_ = conn.Close()
		<-copied
	}, nil
}

// attend opens the connection that tells the server that this process works in the session.
func (c *Client) attend(ctx context.Context, work string) (io.ReadWriteCloser, error) {
	// The context would end the connection, which outlives an interrupted run.
	answer, err := c.request(context.WithoutCancel(ctx), http.MethodGet, "/attend", url.Values{"pid": {strconv.Itoa(os.Getpid())}, "work": {work}})
	if err != nil {
		return nil, err
	}
	conn, ok := answer.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, errors.Join(fmt.Errorf("join the session of process %d: %s", c.PID, answer.Status), answer.Body.Close())
	}
	return conn, nil
}

// Publish has the cluster's ports published, and returns once they take connections.
func (c *Client) Publish(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/publish", nil, nil)
}

// Stop ends the server and the cluster, and returns when they are gone, as they may be
// already; a run that works in its session is a fault of class Locked.
func (c *Client) Stop(ctx context.Context) error {
	err := c.untilGone(ctx, func() error { return c.call(ctx, http.MethodPost, "/stop", nil, nil) })
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the end of process %d, which keeps the cluster running: %w", c.PID, context.Cause(ctx))
	}
	return err
}

// call makes a request and decodes the answer into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, out any) error {
	answer, err := c.request(ctx, method, path, query)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("decode the answer of %s: %w", path, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://background"+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if path == "/attend" {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", protocol)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	var f fault.Fault
	if json.Unmarshal(text, &f) == nil && f.Code != "" {
		return nil, &f
	}
	return nil, fmt.Errorf("%s: %s: %s", path, answer.Status, strings.TrimSpace(string(text)))
}
