package infrastructure

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// backendFile replaces the root's backend, which is "local".
const backendFile = "slipway_backend_override.tf.json"

// tfstates is Terraform's state in the deployment's store.
func tfstates() store.Versions {
	return store.Versions{Prefix: "terraform/", Suffix: ".tfstate", Kept: 1}
}

func currentState(ctx context.Context, env *step.Env) (tfstate, error) {
	s, err := env.Store(ctx)
	if err != nil {
		return tfstate{}, err
	}
	data, generation, err := tfstates().Newest(ctx, s)
	if err != nil {
		return tfstate{}, err
	}
	return parseState(s.Location()+"/"+tfstates().Key(generation), data)
}

// backend serves a step's Terraform its state, on a port of this machine. What Terraform writes gets into
// the deployment's store only while the run has the deployment's lock: it needs no lock of its own.
type backend struct {
	address string
	server  *http.Server
	ended   chan error

	mu      sync.Mutex
	refused error // why a state could not be stored; nil: each was
}

// serveState starts a backend, which still stores what Terraform has done when ctx has ended.
func serveState(ctx context.Context, env *step.Env) (*backend, error) {
	s, err := env.Store(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve Terraform's state: %w", err)
	}
	path := "/" + rand.Text() // nobody else finds it
	b := &backend{address: "http://" + listener.Addr().String() + path, ended: make(chan error, 1)}
	b.server = &http.Server{
		Handler: handler(path, s, env.Generation(), b), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	go func() { b.ended <- b.server.Serve(listener) }()
	return b, nil
}

func handler(path string, s *store.Store, generation int64, b *backend) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		data, _, err := tfstates().Newest(r.Context(), s)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.WriteHeader(http.StatusNoContent)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_, _ = w.Write(data) // Terraform notices what is missing
		}
	})
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, store.MaxBytes))
		if err == nil {
			err = tfstates().Put(context.WithoutCancel(r.Context()), s, generation, data)
		}
		b.mu.Lock()
		b.refused = err
		b.mu.Unlock()
		switch {
		case err == nil:
		case fault.ClassOf(err) == fault.Locked:
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable) // Terraform tries again
		}
	})
	return mux
}

// close ends the backend, whose Terraform has ended.
func (b *backend) close() error {
	err := b.server.Close()
	if e := <-b.ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// because is why the last state was not stored, where that is known, and else err.
func (b *backend) because(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused != nil {
		return b.refused
	}
	return err
}

func (b *backend) write(dir string) error {
	block := map[string]any{"http": map[string]any{"address": b.address}}
	text, err := json.MarshalIndent(map[string]any{"terraform": map[string]any{"backend": block}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, backendFile), append(text, '\n'), 0o600)
}

// errored is the file in which Terraform leaves a state that it cannot store.
const errored = "errored.tfstate"

// keepErrored keeps a state that could not be stored: it says what Terraform has made.
func keepErrored(ctx context.Context, env *step.Env, dir string) error {
	data, err := bounded.File(filepath.Join(dir, errored), store.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := env.Own(ctx)
	if err != nil {
		return err
	}
	key, err := state.PutUnsaved(context.WithoutCancel(ctx), s, env.Run, data)
	if err == nil {
		env.Progress("what Terraform has done is not in its state: it is in %s/%s", s.Location(), key)
	}
	return err
}

// reportErrored names what keepErrored has kept in earlier runs.
func reportErrored(ctx context.Context, env *step.Env) error {
	s, err := env.Own(ctx)
	if err != nil {
		return err
	}
	keys, err := state.Unsaved(ctx, s)
	for _, key := range keys {
		env.Progress("what Terraform of another run has done is not in its state, but in %s/%s: look for resources that are there twice; once that is dealt with, delete this file", s.Location(), key)
	}
	return err
}

// tfstate is what this package reads of a Terraform state file, version 4.
type tfstate struct {
	Version   int          `json:"version"`
	Serial    int64        `json:"serial"`
	Lineage   string       `json:"lineage"`
	Resources []tfresource `json:"resources"`
}

type tfresource struct {
	Module string `json:"module"`
	Mode   string `json:"mode"`
	Type   string `json:"type"`
	Name   string `json:"name"`
}

func parseState(path string, b []byte) (tfstate, error) {
	var s tfstate
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.Version != 4 {
		return s, fmt.Errorf("%s: version %d of the state is unknown", path, s.Version)
	}
	return s, nil
}

func (s tfstate) addresses() []string {
	var out []string
	for _, r := range s.Resources {
		a := r.Type + "." + r.Name
		if r.Mode == "data" {
			a = "data." + a
		}
		if r.Module != "" {
			a = r.Module + "." + a
		}
		out = append(out, a)
	}
	return out
}
