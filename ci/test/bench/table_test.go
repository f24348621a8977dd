package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
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
	s.add(titleModule, cold, 48*time.Second)
	s.add(titleModule, second, 18*time.Second)
	s.add(titleScript, cold, 60*time.Second)
	s.add(titleScript, second, 12*time.Second)
	text := s.verdict()
	require.Regexp(t, `cold install / script's cold install +\| 0\.80 +\| at most 0\.80 +\| met`, text)
	require.Regexp(t, `second install / script's second run +\| 1\.50 +\| at most 0\.50 +\| missed`, text)
	require.Regexp(t, `second install / cold install +\| 0\.38 +\| at most 0\.25 +\| missed`, text)
	require.NotContains(t, text, "CLI", "what was not measured has no ratio")
	require.NotContains(t, text, "static")
	require.Contains(t, s.table(), "60.0 s")

	s.add(titlePlan, planned, 5100*time.Millisecond)
	text = s.verdict()
	require.Regexp(t, `plan without changes, itself +\| 5\.10 s +\| at most 5\.00 s +\| missed`, text)

	s.add(titleStatic, cold, 36*time.Second)
	s.add(titleStatic, second, 13*time.Second)
	s.add(titleStaticScript, cold, 30*time.Second)
	s.add(titleHelmfile, second, 10*time.Second)
	text = s.verdict()
	require.Regexp(t, `static platform: cold install / script's cold install +\| 1\.20 +\| at most 1\.20 +\| met`, text)
	require.Regexp(t, `static platform: second install / helmfile's second run +\| 1\.30 +\| at most 1\.20 +\| missed`, text)
}

func TestPinsBecomeShellVariables(t *testing.T) {
	dir := t.TempDir()
	sum := strings.Repeat("a", 64)
	index, err := bundle.Index{
		Version: bundle.Format, Platform: "linux/amd64",
		Files: []bundle.File{
			{Path: "bin/kubectl", Name: "kubectl", Kind: bundle.Tool, Version: "1.35.4", SHA256: sum},
			{Path: "manifests/argocd/x.yaml", Name: "argocd", Kind: bundle.Manifest, Version: "3", SHA256: sum},
		},
		Images: []bundle.Image{
			{Name: "pause", Ref: "slipway.local/pause:1", Digest: "sha256:" + sum},
			{Name: "local-path-provisioner", Ref: "slipway.local:5000/local-path-provisioner", Digest: "sha256:" + sum},
		},
	}.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), index, 0o644))
	p, err := readPins(dir)
	require.NoError(t, err)
	require.Equal(t, "image_local_path_provisioner='slipway.local:5000/local-path-provisioner@sha256:"+sum+"'\n"+
		"image_pause='slipway.local/pause@sha256:"+sum+"'\nversion_kubectl='1.35.4'\n", p.env())
	_, err = readPins(t.TempDir())
	require.ErrorContains(t, err, "make bundle")
}

func TestMachine(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dagger"), []byte("#!/bin/sh\necho 'dagger v0.20.8 (image) linux/amd64'\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	text, err := machine(t.Context(), map[string]string{"kubectl": "1.37.2", "slipway": "source"})
	require.NoError(t, err)
	require.Regexp(t, `; \d+ CPUs, \d+\.\d GiB of memory, Linux \S+, load average \d+\.\d\d\n(WARNING: .*\n)?dagger v0\.20\.8 .*\nkubectl 1\.37\.2\n`, text)
	require.NotContains(t, text, ", 0.0 GiB")
}
