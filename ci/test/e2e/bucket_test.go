package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	gateway "github.com/slipway-sh/slipway/ci/test/s3"
	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// The credentials of the S3 server of these tests.
const (
	s3ID     = "e2e-access-key-id"
	s3Secret = "c4nary-e2e-secret-access-key"
)

// TestStateInABucket installs the first half with the deployment's state in a bucket of a real S3
// server, which runs on this machine and is reached by the steps through the
// engine's bridge.
func TestStateInABucket(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-bucket")
	const last = "preorchestrator/secrets"
	got := collector(t)
	d.Env = got.env
	server := startS3(t)
	key := ageKey(t)
	config := server.configuration(t, key)
	cli := func(t *testing.T, secret, command string, args ...string) result {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		cmd := d.CLI(ctx, command, append([]string{"--config", config}, args...)...)
		cmd.Env = append(cmd.Env, "E2E_ID="+s3ID, "E2E_SECRET="+secret)
		r := finish(t, cmd)
		t.Logf("slipway %s: exit %d after %s", command, r.code, r.took.Round(time.Second))
		require.NotContains(t, r.out+r.err, s3Secret)
		return r
	}
	ok := func(t *testing.T, command string, args ...string) result {
		t.Helper()
		r := cli(t, s3Secret, command, args...)
		require.Zero(t, r.code, slipway.Tail(r.err))
		return r
	}
	ok(t, "destroy", "--yes") // whatever an earlier run of the tests left on the engine

	t.Run("one that refuses stops a run before anything starts", func(t *testing.T) {
		r := cli(t, "an0ther-secret-access-key", "install", "--until", last)
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "STO-002")
		require.NotContains(t, r.err, "infrastructure/terraform: running")
	})

	t.Run("install", func(t *testing.T) {
		ok(t, "install", "--until", last)
		below := "team/" + d.Name + "/"
		keys := server.keys(t)
		for _, want := range []string{`lock/\d+\.json`, `secrets/kubeconfig/\d+\.age`, `journal/infrastructure\.terraform/\d+\.json`, `state/\d+\.yaml`, `terraform/\d+\.tfstate`, `latest/\d+`, `runs/[^/]+/report\.json`, `runs/[^/]+/steps/preorchestrator\.secrets/log\.txt`} {
			re := regexp.MustCompile("^" + below + want + "$")
			require.True(t, slices.ContainsFunc(keys, re.MatchString), want)
		}
		require.NotContains(t, keys, below+"secrets/kubeconfig")
		require.NotContains(t, keys, below+"secrets/identity")
		for _, k := range keys {
			require.NotContains(t, server.read(t, k), s3Secret, k)
			require.NotContains(t, server.read(t, k), "client-key-data", k)
		}
	})

	t.Run("again, nothing is done again", func(t *testing.T) {
		r := ok(t, "install", "--until", last)
		require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, r.out)
		require.Regexp(t, `(?m)^\s*preorchestrator/secrets\s+reused`, r.out)
	})

	t.Run("the module sees it too", func(t *testing.T) {
		text, err := os.ReadFile(key)
		require.NoError(t, err)
		secrets := filepath.Join(t.TempDir(), "secrets.env")
		require.NoError(t, os.WriteFile(secrets, []byte("E2E_ID="+s3ID+"\nE2E_SECRET="+s3Secret+"\nE2E_KEY='"+string(text)+"'\n"), 0o600))
		m, config := d, write(t, configured+strings.Replace(stateAt(server.Address, key), "file:"+key, "env:E2E_KEY", 1))
		m.Flags = []string{"--secrets", "file:" + secrets}
		require.Contains(t, m.ok(t, "status", "--config", config).out, "preorchestrator/secrets")
		require.Len(t, regexp.MustCompile(`(?m)^\S+\s+install\s+succeeded\s`).FindAllString(m.ok(t, "runs", "--config", config).out, -1), 2)
		dir := t.TempDir()
		m.ok(t, "report", "--config", config, "export", "--path", dir)
		require.FileExists(t, filepath.Join(dir, "report.html"))
		require.FileExists(t, filepath.Join(dir, "steps/preorchestrator.secrets/log.txt"))
		r := d.call(t, "status", "--config", config)
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "CFG-007", "the configuration's references are not for the module")
	})

	t.Run("another key opens nothing", func(t *testing.T) {
		right := config
		config = server.configuration(t, ageKey(t))
		defer func() { config = right }()
		r := cli(t, s3Secret, "install", "--until", last)
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "SEC-002")
	})

	t.Run("destroy", func(t *testing.T) {
		r := ok(t, "destroy", "--yes")
		require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out)
		for _, k := range server.keys(t) {
			require.Regexp(t, `^team/`+d.Name+`/(latest|lock|runs)/`, k)
		}
	})

	t.Run("with a key that Slipway has made", func(t *testing.T) {
		config = server.configuration(t, "")
		ok(t, "install", "--until", last)
		require.Regexp(t, `(?m)^\s*preorchestrator/secrets\s+reused`, ok(t, "install", "--until", last).out)
		require.Regexp(t, `infrastructure/inventory\s+succeeded`, ok(t, "destroy", "--yes").out)
	})

	t.Run("no secret is in what a collector of telemetry gets", func(t *testing.T) {
		got.requireNone(t, map[string][]string{"of the bucket": forms(s3Secret), "key of the state": {"AGE-SECRET-KEY-"}})
	})
}

// TestStateOfTwoMachines runs the tests of ci/test/s3 that need the bundle: two machines
// that share a bucket, with Terraform's state in it.
func TestStateOfTwoMachines(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-C", filepath.Join(root(t), "ci/test/s3"), "-count=1", "-vet=off", "-v", "-run", "TerraformStandsStill|TwoMachines", ".")
	cmd.Env = append(os.Environ(), "SLIPWAY_TERRAFORM="+filepath.Join(d.Bundle, "bin/terraform"))
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: TestTwoMachines")
	require.Contains(t, string(out), "--- PASS: TestTerraformStandsStill")
}

// s3Server is an S3 server of this machine, on the engine's bridge, where steps reach it.
type s3Server struct{ *gateway.Server }

// ageKey is a file with a new key.
func ageKey(t *testing.T) string {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.txt")
	require.NoError(t, os.WriteFile(file, []byte("# of the tests\n"+id.String()+"\n"), 0o600))
	return file
}

// startS3 builds and starts the server of ci/test/s3, until the test ends.
func startS3(t *testing.T) s3Server {
	t.Helper()
	return s3Server{gateway.Start(t, filepath.Join(root(t), "ci/test/s3/server"), bridgeAddress(t), "AWS_ACCESS_KEY_ID="+s3ID, "AWS_SECRET_ACCESS_KEY="+s3Secret)}
}

// configuration is a file with one whose state is in the bucket.
func (s s3Server) configuration(t *testing.T, key string) string {
	t.Helper()
	return write(t, configured+stateAt(s.Address, key))
}

// stateAt is the section of a configuration whose state is in the bucket at an address, below
// team/, and encrypted with a key, or with an empty one with that which Slipway makes; the
// credentials are in E2E_ID and E2E_SECRET.
func stateAt(address, key string) string {
	text := fmt.Sprintf(`
state:
  url: "s3://slipway?region=us-east-1&endpoint=http://%s&use_path_style=true&prefix=team"
  credentials: {AWS_ACCESS_KEY_ID: "env:E2E_ID", AWS_SECRET_ACCESS_KEY: "env:E2E_SECRET"}
`, address)
	if key != "" {
		text += "  key: file:" + key + "\n"
	}
	return text
}

// keys are those of the bucket's objects.
func (s s3Server) keys(t *testing.T) []string {
	t.Helper()
	var keys []string
	require.NoError(t, filepath.WalkDir(s.Objects(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		key, err := filepath.Rel(s.Objects(), path)
		keys = append(keys, filepath.ToSlash(key))
		return err
	}))
	return keys
}

func (s s3Server) read(t *testing.T, key string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Objects(), filepath.FromSlash(key)))
	require.NoError(t, err)
	return string(text)
}
