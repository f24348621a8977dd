package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// Env is the environment of a step. It is safe for concurrent use.
type Env struct {
	*shared
	Run    string // id of the run
	ID     string // "infrastructure/terraform"
	Logger *slog.Logger

	Deployment string // its name, [a-z0-9-]

	StateDir       string // the deployment's state volume
	PlatformDir    string // the platform release, read-only
	BundleDir      string // the bundle's manifests, read-only
	TerraformDir   string // the provider's Terraform root, read-only
	ToolsDir       string // the pinned tools
	Kubeconfig     string // may not exist yet; never written where the cluster is not Slipway's
	TLSKeyFile     string // the private key of the user's certificate
	UserSecretsDir string // the secrets of the configuration, by name
	// RegistryAuthFile has the account with which nodes pull; see RegistryAccount.
	RegistryAuthFile string

	Backend state.Backend // where the deployment's state is

	// Existing says that the cluster is not Slipway's: Kubeconfig is what the user gave.
	Existing bool
	// Plan is the plan for which the step only looks; nil: it runs. See Connect.
	Plan *plan.Step
}

// shared is what an environment and those of Planned share.
type shared struct {
	opened sync.Mutex   // of store
	store  *store.Store // nil until it is asked for
	work   *state.Work  // nil unless the step's run must have the lock

	log     *redact.LineWriter // the step's log file
	tools   *redact.LineWriter // the same file; a line that a tool has not ended yet stays whole
	screen  *redact.LineWriter // stderr
	secrets *redact.Secrets
	said    atomic.Pointer[string] // what Progress told last

	counting sync.Mutex // of counts
	counts   map[string]int64

	waiting sync.Mutex // of waits
	waits   []contract.Wait
}

// Dirs are the paths of a step's container; an empty one has its default from
// package contract: see OrDefault.
type Dirs struct {
	State, Platform, Bundle, Terraform, Tools, Access string
}

// OrDefault is d with a default in place of each path that is empty.
func (d Dirs) OrDefault() Dirs {
	return Dirs{
		State:     cmp.Or(d.State, contract.StateDir),
		Platform:  cmp.Or(d.Platform, contract.PlatformDir),
		Bundle:    cmp.Or(d.Bundle, contract.BundleDir),
		Terraform: cmp.Or(d.Terraform, contract.TerraformDir),
		Tools:     cmp.Or(d.Tools, contract.ToolsDir),
		Access:    cmp.Or(d.Access, contract.AccessFile),
	}
}

// Kubeconfig is the path of the access to the cluster: to an existing one, if that is there.
func (d Dirs) Kubeconfig() string {
	if _, err := os.Stat(d.Access); err == nil {
		return d.Access
	}
	return d.State + "/secrets/kubeconfig"
}

// NewEnv returns an environment that logs to log, and to screen what a user
// should see. Tests call steps with one of their own.
func NewEnv(run, id string, dirs Dirs, log, screen io.Writer) *Env {
	secrets := &redact.Secrets{}
	file := &logFile{dst: log}
	dirs = dirs.OrDefault()
	e := &Env{
		Run: run, ID: id,
		StateDir: dirs.State, PlatformDir: dirs.Platform, BundleDir: dirs.Bundle, TerraformDir: dirs.Terraform, ToolsDir: dirs.Tools,
		shared: &shared{
			log:     redact.NewLineWriter(secrets, file),
			tools:   redact.NewLineWriter(secrets, file),
			screen:  redact.NewLineWriter(secrets, screen),
			secrets: secrets,
		},
	}
	e.Kubeconfig = e.StateDir + "/secrets/kubeconfig"
	e.TLSKeyFile, e.UserSecretsDir, e.RegistryAuthFile = contract.TLSKeyFile, contract.UserSecretsDir, contract.RegistryAuthFile
	e.Backend = state.Backend{Volume: e.StateDir}
	e.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(e.log, e.screen), &slog.HandlerOptions{Level: slog.LevelInfo}))
	return e
}

// Planned is e for a plan: with it a step only looks.
func (e *Env) Planned(p *plan.Step) *Env {
	planned := *e
	planned.Plan = p
	return &planned
}

// Connect returns a client of the cluster, which sends no write where the step is planned. It does
// not reach out to the cluster.
func (e *Env) Connect() (*kube.Client, error) {
	c, err := kube.Connect(e.Kubeconfig, e.Progress)
	if err != nil {
		return nil, err
	}
	c.OnWait = e.Waits
	if e.Plan == nil {
		return c, nil
	}
	return c.Planned(e.Plan)
}

// Open reads the platform release, and connects to the cluster.
func (e *Env) Open() (*platform.Release, *kube.Client, error) {
	r, err := platform.Load(os.DirFS(e.PlatformDir))
	if err != nil {
		return nil, nil, err
	}
	c, err := e.Connect()
	return r, c, err
}

// useAccess makes file the access to the cluster if it exists: the cluster is not Slipway's then.
func (e *Env) useAccess(file string) error {
	text, err := bounded.File(file, bounded.Written)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the access to the cluster: %w", err)
	}
	e.Kubeconfig, e.Existing = file, true
	kubeconfig.Secrets(text, e.Redact)
	return nil
}

// RegistryAccount is a docker config.json with the account with which the nodes of a cluster
// that is there pull from the registry; nil where there is none, or the step does not get it.
func (e *Env) RegistryAccount() ([]byte, error) {
	text, err := bounded.File(e.RegistryAuthFile, bounded.Written)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the registry's account: %w", err)
	}
	redact.DockerSecrets(text, e.Redact)
	return text, nil
}

// RedactSecrets registers what the container has for the deployment in secret, by now.
func (e *Env) RedactSecrets() error { return e.Backend.Secrets(e.Redact) }

// Store is the store with the deployment's state. Once the step's run has lost the lock,
// writing to it fails.
func (e *Env) Store(ctx context.Context) (*store.Store, error) {
	s, err := e.Own(ctx)
	if err != nil || e.work == nil {
		return s, err
	}
	return e.work.Store, nil
}

// Generation is that of the lock under which the step works; 0 if it needs none.
func (e *Env) Generation() int64 {
	if e.work == nil {
		return 0
	}
	return e.work.Generation
}

// Own is Store for what is only of the step's own run, which can be written at any time.
func (e *Env) Own(ctx context.Context) (*store.Store, error) {
	e.opened.Lock()
	defer e.opened.Unlock()
	if e.store != nil {
		return e.store, nil
	}
	s, err := e.Backend.Open(ctx)
	if err == nil {
		e.store = s
	}
	return s, err
}

// Identity tells the deployment from others of its name; empty while it has none.
func (e *Env) Identity(ctx context.Context) (string, error) {
	s, err := e.Own(ctx)
	if err != nil {
		return "", err
	}
	i, err := state.Identity(ctx, s)
	if err != nil || i == nil {
		return "", err
	}
	return i.ID, nil
}

// close ends the work of the step's run, and lets go of the store, if it was opened.
func (e *Env) close() (err error) {
	e.opened.Lock()
	defer e.opened.Unlock()
	if e.work != nil {
		err = e.work.End()
	}
	if e.store != nil {
		err = errors.Join(err, e.store.Close())
		e.store = nil
	}
	return err
}

// Output is where the output of tools goes: the step's log file only.
func (e *Env) Output() io.Writer { return e.tools }

// Progress tells the user in one line what the step is doing. What a step that only looks tells is
// in its log.
func (e *Env) Progress(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	e.said.Store(&text)
	if e.Plan == nil { // else it tells what it would do
		_, _ = io.WriteString(e.screen, contract.Line(os.Getenv(contract.OriginVariable), e.ID, text))
	}
	_, _ = io.WriteString(e.log, contract.Line("", e.ID, text))
}

// Keep writes a redacted file to the step's directory in the run's record, for the report
// of a step that fails and has no output.
func (e *Env) Keep(name string, data []byte) error {
	stage, step, _ := strings.Cut(e.ID, "/")
	dir := recordDir(e.StateDir, e.Run, stage, step)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, name), []byte(e.secrets.Clean(string(data))), 0o644)
}

func recordDir(state, run, stage, step string) string {
	return filepath.Join(state, "runs", run, "steps", stage+"."+step)
}

// mostCounts is how many names a step may count under.
const mostCounts = 100

// Count notes a number for the record of the run, in the place of an earlier one of that
// name. A name in which there is a secret is passed over, and so is one too many.
func (e *Env) Count(name string, n int64) {
	e.counting.Lock()
	defer e.counting.Unlock()
	if _, there := e.counts[name]; e.Clean(name) != name || !there && len(e.counts) >= mostCounts {
		return
	}
	if e.counts == nil {
		e.counts = map[string]int64{}
	}
	e.counts[name] = n
}

// Counts are the numbers that were noted; nil if none were.
func (e *Env) Counts() map[string]int64 {
	e.counting.Lock()
	defer e.counting.Unlock()
	return maps.Clone(e.counts)
}

func (e *Env) lastSaid() string {
	if text := e.said.Load(); text != nil {
		return *text
	}
	return "nothing"
}

// Redact makes every writer of e replace secret by "***" from now on.
func (e *Env) Redact(secret string) { e.secrets.Add(secret) }

// Clean returns text with "***" for every secret that e redacts. Steps use it for their outputs.
func (e *Env) Clean(text string) string { return e.secrets.Clean(text) }

func (e *Env) flush() {
	for _, w := range []*redact.LineWriter{e.tools, e.log, e.screen} {
		w.Flush()
	}
}

// logFile lets several writers use dst.
type logFile struct {
	mu  sync.Mutex
	dst io.Writer
}

func (s *logFile) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dst.Write(p)
}
