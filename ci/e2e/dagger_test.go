package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// callLimit bounds one `dagger call`.
const callLimit = 20 * time.Minute

// result is how a `dagger call` ended.
type result struct {
	out, err string // standard output and error
	code     int
	took     time.Duration
}

// deployment is a deployment under test and what every call on it is given.
type deployment struct {
	name, bundle string
	lock         string   // file with the digests of a registry, in place of the bundle
	dir          string   // where dagger is called; the checkout if empty
	flags        []string // of the module, before the function
}

// open skips the test unless engine and bundle are there.
func open(t *testing.T, name string) deployment {
	t.Helper()
	if os.Getenv("SLIPWAY_E2E") == "" {
		t.Skip("needs the engine and the bundle: run make e2e")
	}
	bundle := os.Getenv("SLIPWAY_BUNDLE")
	require.NotEmpty(t, bundle, "SLIPWAY_BUNDLE is not set: run make e2e")
	return deployment{name: name, bundle: bundle}
}

// root is the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// command is a `dagger call` of function on the deployment, ready to start.
func (d deployment) command(ctx context.Context, t *testing.T, function string, args ...string) *exec.Cmd {
	t.Helper()
	all := []string{"call", "--progress", "plain", "--mod", root(t)}
	if d.lock != "" {
		all = append(all, "--lock", d.lock)
	} else {
		all = append(all, "--bundle", d.bundle)
	}
	all = append(append(all, d.flags...), function, "--name", d.name)
	cmd := exec.CommandContext(ctx, "dagger", append(all, args...)...)
	if cmd.Dir = d.dir; cmd.Dir == "" {
		cmd.Dir = root(t)
	}
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "DAGGER_NO_NAG=1")
	return cmd
}

// call runs `dagger call` to its end.
func (d deployment) call(t *testing.T, function string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	cmd := d.command(ctx, t, function, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	r := result{out: out.String(), err: errs.String(), took: time.Since(start)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else {
		require.NoError(t, err, "start dagger")
	}
	t.Logf("dagger call %s %s (%s): exit %d after %s", function, strings.Join(args, " "), d.name, r.code, r.took.Round(time.Second))
	return r
}

// ok is call that must succeed.
func (d deployment) ok(t *testing.T, function string, args ...string) result {
	t.Helper()
	r := d.call(t, function, args...)
	require.Zero(t, r.code, "dagger call %s failed:\n%s", function, tail(r.err))
	return r
}

// shell runs a script in the toolchain, connected to the cluster.
func (d deployment) shell(t *testing.T, script string) string {
	t.Helper()
	return d.ok(t, "toolchain", "with-exec", "--args", list("sh", "-ceu", script), "stdout").out
}

// list encodes arguments for a flag that takes several.
func list(args ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(args)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// status is what `status --output json` prints.
type status struct {
	Deployment string `json:"deployment"`
	Platform   string `json:"platform"`
	Outcome    string `json:"outcome"`
	Steps      []struct {
		Stage  string `json:"stage"`
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"steps"`
	Apps []struct {
		Name     string `json:"name"`
		Sync     string `json:"sync"`
		Health   string `json:"health"`
		Revision string `json:"revision"`
	} `json:"apps"`
}

func (d deployment) status(t *testing.T, args ...string) status {
	t.Helper()
	var s status
	r := d.ok(t, "status", append([]string{"--format", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(r.out), &s), r.out)
	return s
}

// requireHealthy asserts that exactly these apps are Synced and Healthy at one
// revision.
func requireHealthy(t *testing.T, s status, apps ...string) {
	t.Helper()
	var names []string
	for _, a := range s.Apps {
		names = append(names, a.Name)
		require.Equal(t, "Synced", a.Sync, a.Name)
		require.Equal(t, "Healthy", a.Health, a.Name)
		require.Regexp(t, "^[0-9a-f]{40}$", a.Revision, a.Name)
		require.Equal(t, s.Apps[0].Revision, a.Revision, a.Name)
	}
	require.ElementsMatch(t, apps, names)
}

// tail is the end of a long output.
func tail(s string) string {
	if len(s) > 6000 {
		return "…" + s[len(s)-6000:]
	}
	return s
}
