package all_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/aws"
	"github.com/slipway-sh/slipway/providers/azure"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/providers/onprem"
)

var update = flag.Bool("update", false, "write the goldens anew")

// leastBroken is how many broken files there are at least.
const leastBroken = 200

// known returns the providers that the goldens name: a further one leaves them as they are.
func known() *providers.Registry {
	return providers.NewRegistry(local.Provider{}, onprem.Provider{}, aws.Provider{}, azure.Provider{})
}

// canary is in the broken files where people write secrets, and in the environment.
const canary = "hunter2"

// TestBroken loads every file of testdata/broken: what its user is told is in the
// golden beside it.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), leastBroken)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := messages(t, filepath.Base(file), text)
			require.NotContains(t, strings.ToLower(got), canary)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			if !bytes.ContainsRune(text, 0) { // the line ends of UTF-16 are others
				windows := bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
				require.Equal(t, got, messages(t, filepath.Base(file), windows), "with CRLF")
			}
		})
	}
	goldens, err := filepath.Glob("testdata/broken/*.txt")
	require.NoError(t, err)
	require.Len(t, goldens, len(files), "a golden for each file, and no other")
}

// messages returns what a user sees for a broken file.
func messages(t *testing.T, name string, text []byte) string {
	t.Helper()
	env := map[string]string{
		"CI_DOMAIN": "ci.example.com", "CI_NAME": "ci", "CI_REGION": "eu-central-1", "CI_USER": "somebody",
		"CI_SECRET": canary + " " + canary, "EMPTY": "",
	}
	opts := known().Options()
	opts.File = name
	opts.Env = func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	opts.Stores = map[string][]string{"s3": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}}
	opts.Store = func(url string) error {
		if url != "s3://bucket" {
			return errors.New("there is no such bucket")
		}
		return nil
	}
	_, err := config.Load(text, opts)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Usage, f.Class)
	return fmt.Sprintf("error %s: %v\n%s\n", f.Code, err, f.Fix)
}
