package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// data is what release 2.0.0 says of the entries.
type data struct{ Dump, Restore, Check []string }

func entriesOf(t *testing.T) data {
	t.Helper()
	text, err := os.ReadFile("../../2.0.0/platform.yaml")
	require.NoError(t, err)
	var release struct{ Data []data }
	require.NoError(t, yaml.Unmarshal(text, &release))
	require.Len(t, release.Data, 1)
	return release.Data[0]
}

// run runs a command of the release as its pod does, in a database.
func (s server) run(t *testing.T, database string, command []string, input []byte) (out []byte, err error) {
	t.Helper()
	cmd := s.command(t.Context(), "psql") // for its environment
	program, lookErr := exec.LookPath(command[0])
	if lookErr != nil {
		program = filepath.Join(s.bin, command[0])
	}
	cmd.Path, cmd.Args = program, command
	cmd.Env = append(cmd.Env, "PATH="+s.bin+":"+os.Getenv("PATH"), "PGDATABASE="+database, "PGTZ=UTC")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	return cmd.Output()
}

// TestABackupIsProvedAndRestored: of either schema, into a database of its own, and over the
// other schema; one that is cut off changes nothing.
func TestABackupIsProvedAndRestored(t *testing.T) {
	s, release := postgres(t), entriesOf(t)
	s.seed(t, seedTogether)
	must := func(database string, command []string, input []byte) []byte {
		t.Helper()
		out, err := s.run(t, database, command, input)
		require.NoError(t, err)
		return out
	}
	first := must("postgres", release.Dump, nil)
	line := must("postgres", release.Check, nil)
	require.Regexp(t, `^3 entries up to 3, [0-9a-f]{32}\n$`, string(line))

	s.sql(t, "CREATE DATABASE scratch")
	must("scratch", release.Restore, first)
	require.Equal(t, line, must("scratch", release.Check, nil))

	s.migration(t, "EXPAND")
	s.sql(t, "INSERT INTO entries (author, message) VALUES ('Mary', 'later')")
	require.Equal(t, line, must("postgres", release.Check, line), "what was backed up is there, and more")
	s.migration(t, "CONTRACT")
	require.Equal(t, line, must("postgres", release.Check, line))
	second := must("postgres", release.Dump, nil)
	must("scratch", release.Restore, second)
	require.Equal(t, must("postgres", release.Check, nil), must("scratch", release.Check, nil))

	_, err := s.run(t, "postgres", release.Restore, first[:len(first)-100])
	require.Error(t, err, "it is cut off")
	require.Equal(t, apart, s.columns(t))
	must("postgres", release.Restore, first)
	require.Equal(t, together, s.columns(t))
	require.Equal(t, line, must("postgres", release.Check, line))
	list, err := s.open(t).List(t.Context())
	require.NoError(t, err, "the reader reads what was restored")
	require.Len(t, list, 3)

	s.sql(t, "UPDATE entries SET message = 'She sinks!' WHERE id = 3")
	_, err = s.run(t, "postgres", release.Check, line)
	require.Error(t, err, "an entry is not what it was")
}
