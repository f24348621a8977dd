package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
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
	slipway.Deployment
	printed *transcript // of every call but those that show secrets
}

// open skips the test unless engine and bundle are there.
func open(t *testing.T, name string) deployment {
	t.Helper()
	if os.Getenv("SLIPWAY_E2E") == "" {
		t.Skip("needs the engine and the bundle: run make e2e")
	}
	bundle := os.Getenv("SLIPWAY_BUNDLE")
	require.NotEmpty(t, bundle, "SLIPWAY_BUNDLE is not set: run make e2e")
	return deployment{slipway.Deployment{Name: name, Bundle: bundle, Root: root(t)}, &transcript{}}
}

// root is the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

// call runs `dagger call` to its end.
func (d deployment) call(t *testing.T, function string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	r := finish(t, d.Module(ctx, function, args...))
	if function != "toolchain" && function != "kubeconfig" {
		d.printed.add(r.out + r.err)
	}
	t.Logf("dagger call %s %s (%s): exit %d after %s", function, strings.Join(args, " "), d.Name, r.code, r.took.Round(time.Second))
	return r
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	r := result{out: out.String(), err: errs.String(), took: time.Since(start)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else {
		require.NoError(t, err, "start %s", cmd.Path)
	}
	return r
}

// ok is call that must succeed.
func (d deployment) ok(t *testing.T, function string, args ...string) result {
	t.Helper()
	r := d.call(t, function, args...)
	require.Zero(t, r.code, "dagger call %s failed:\n%s", function, slipway.Tail(r.err))
	return r
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
	State      string `json:"state"`
	Refused    *struct {
		Workflow string `json:"workflow"`
		Code     string `json:"code"`
	} `json:"refused"`
	Waiting []struct {
		Step  string    `json:"step"`
		For   string    `json:"for"`
		Since time.Time `json:"since"`
		Until time.Time `json:"until"`
		Seen  string    `json:"seen"`
	} `json:"waiting"`
	Gates []struct {
		Step string `json:"step"`
		Gate string `json:"gate"`
		Open bool   `json:"open"`
		Seen string `json:"seen"`
	} `json:"gates"`
	Steps []struct {
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

// requireInstalled asserts that an install shows all apps of the reference platform as
// Synced and Healthy.
func requireInstalled(t *testing.T, r result) {
	t.Helper()
	for _, app := range apps {
		require.Regexp(t, `(?m)^\s*`+app+`\s.*\sSynced\s+Healthy\s`, r.out)
	}
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
