package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianIsTheMiddle(t *testing.T) {
	var s samples
	require.Zero(t, s.median(titleModule, cold))
	for _, seconds := range []int{9, 1, 5} {
		s.add(titleModule, cold, time.Duration(seconds)*time.Second)
	}
	require.InDelta(t, 5, s.median(titleModule, cold), 1e-9)
	s.add(titleModule, cold, 6*time.Second)
	require.InDelta(t, 5.5, s.median(titleModule, cold), 1e-9)
}

func TestVerdictNamesMissedTargets(t *testing.T) {
	var s samples
	s.add(titleModule, cold, 60*time.Second)
	s.add(titleModule, second, 18*time.Second)
	s.add(titleScript, cold, 60*time.Second)
	s.add(titleScript, second, 12*time.Second)
	text := s.verdict()
	require.Regexp(t, `cold install / script's cold install +\| 1\.00 +\| at most 1\.00 +\| met`, text)
	require.Regexp(t, `second install / script's second run +\| 1\.50 +\| at most 1\.50 +\| met`, text)
	require.Regexp(t, `second install / cold install +\| 0\.30 +\| at most 0\.25 +\| missed`, text)
	require.NotContains(t, text, "CLI: cold install / script's cold install | 0.00 | at most")
	require.Contains(t, s.table(), "60.0 s")
}

func TestPinsBecomeShellVariables(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bundle.json"), []byte(`{
"files":[{"path":"bin/kubectl","name":"kubectl","kind":"tool","version":"1.35.4"},{"name":"argocd","kind":"manifest","version":"3"}],
"images":[{"name":"pause","ref":"slipway.local/pause:1","digest":"sha256:aa"},
{"name":"local-path-provisioner","ref":"slipway.local:5000/local-path-provisioner","digest":"sha256:bb"}]}`), 0o644))
	p, err := readPins(dir)
	require.NoError(t, err)
	require.Equal(t, "image_local_path_provisioner='slipway.local:5000/local-path-provisioner@sha256:bb'\n"+
		"image_pause='slipway.local/pause@sha256:aa'\nversion_kubectl='1.35.4'\n", p.env())
	_, err = readPins(t.TempDir())
	require.ErrorContains(t, err, "make bundle")
}

func TestMemory(t *testing.T) {
	n, err := memTotal("MemTotal:       25165824 kB\nMemFree: 1 kB\n")
	require.NoError(t, err)
	require.Equal(t, int64(24<<30), n)
	_, err = memTotal("")
	require.Error(t, err)
}
