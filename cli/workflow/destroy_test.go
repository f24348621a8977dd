package workflow

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// storedDeployments makes the stored deployments be these.
func storedDeployments(t *testing.T, names ...string) {
	t.Helper()
	t.Setenv(config.EnvFolder, t.TempDir())
	folder, err := config.DefaultFolder()
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, folder.Write(name, []byte("apiVersion: slipway.sh/v1\nglobal: {name: "+name+"}\n")))
	}
}

// The name of a deployment that never was is probably a mistyped one.
func TestANameUnderWhichNothingWasInstalled(t *testing.T) {
	storedDeployments(t, "staging", "prod")
	err := neverInstalled("stagin")
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNotThere})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, `nothing was ever installed under that name; it does not exist; there are prod, staging; did you mean "staging"?`)

	storedDeployments(t)
	require.ErrorContains(t, neverInstalled("x"), "remove deployment x: nothing was ever installed under that name; there are none in ")
}

// left is a deployment of which no more is known than this.
type left struct{ known, nothing bool }

func (l left) Known(context.Context) (bool, error) { return l.known, nil }

func (l left) Nothing(context.Context, stages.Workflow) (bool, error) { return l.nothing, nil }

// A destroy of what never was removes nothing, says so, and begins no run, which would leave
// a record.
func TestADestroyOfWhatNeverWas(t *testing.T) {
	storedDeployments(t)
	named, filed := source.Source{Name: "x"}, source.Source{Name: "x", File: "x.yaml"}
	for name, c := range map[string]struct {
		source source.Source
		ignore bool
		left   left
		there  bool
		said   string
		code   fault.Code
	}{
		"a name":                         {source: named, left: left{nothing: true}, code: contract.CodeNotThere},
		"a name that need not be":        {source: named, ignore: true, left: left{nothing: true}, said: "there is no deployment x, and never was: nothing was removed\n"},
		"a file":                         {source: filed, left: left{nothing: true}, said: "there is no deployment x, and never was: nothing was removed\n"},
		"one that was removed":           {source: named, left: left{known: true, nothing: true}, there: true},
		"one that outlived its state":    {source: named, ignore: true, there: true},
		"one that outlived it, by name":  {source: named, code: contract.CodeNotThere},
		"one that is there, and ignored": {source: named, ignore: true, left: left{known: true}, there: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := destroyOptions{ignore: c.ignore}
			o.deployment.Source = c.source
			there, err := o.find(t.Context(), console.Streams{Out: &out, Err: progress.Open(io.Discard, progress.Options{})}, c.left, "x")
			if c.code == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			}
			require.Equal(t, c.there, there)
			require.Equal(t, c.said, out.String())
		})
	}
}
