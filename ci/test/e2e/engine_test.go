package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// otherEngine is one beside that of the tests, with layers and volumes of its own.
type otherEngine struct {
	address string
	start   func() // again, after end
	end     func()
}

// engineDir is where make engine keeps what is the engine's of the tests.
func engineDir(t *testing.T) string {
	t.Helper()
	dir, own := strings.CutSuffix(strings.TrimPrefix(os.Getenv("_EXPERIMENTAL_DAGGER_RUNNER_HOST"), "unix://"), "/run/engine.sock")
	if !own {
		t.Skip("the engine is not one of make engine")
	}
	return dir
}

// secondEngine starts one as make engine does, with more arguments for that.
func secondEngine(t *testing.T, args ...string) *otherEngine {
	t.Helper()
	store := filepath.Dir(engineDir(t))
	sum := sha256.Sum256([]byte(t.Name()))
	second := fmt.Sprintf("%s-%x", store, sum[:3]) // the path of its socket has to be short
	require.NoError(t, os.MkdirAll(second, 0o755))
	_ = os.Remove(filepath.Join(second, "objects")) // of a run that was killed
	require.NoError(t, os.Symlink(filepath.Join(store, "objects"), filepath.Join(second, "objects")))
	engine := func(store string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", append([]string{"run", "-C", "ci/dev/engine", "."}, args...)...)
		cmd.Dir, cmd.Env = root(t), append(os.Environ(), "SLIPWAY_CACHE="+store)
		r := finish(t, cmd)
		require.Zero(t, r.code, slipway.Tail(r.err))
	}
	runs := false
	e := &otherEngine{address: "unix://" + second + "/engine/run/engine.sock"}
	e.start = func() {
		runs = true
		engine(second, append([]string{"start", "--own"}, args...)...)
		engine(store, "start") // bin/dagger is that of the first store again
	}
	e.end = func() {
		if runs {
			engine(second, "stop")
		}
		runs = false
	}
	t.Cleanup(func() {
		e.end()
		require.NoError(t, os.RemoveAll(second))
	})
	e.start()
	return e
}

// trusting is a second engine, which trusts an authority. This machine does only while the
// engine starts, which reads whom it trusts.
func trusting(t *testing.T, authority string) *otherEngine {
	t.Helper()
	text, err := os.ReadFile(authority)
	require.NoError(t, err)
	file := filepath.Join("/usr/local/share/ca-certificates", "slipway-e2e-"+strings.ReplaceAll(t.Name(), "/", "-")+".crt")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, text, 0o644))
	defer func() { require.NoError(t, os.Remove(file)) }()
	return secondEngine(t)
}
