package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSection(t *testing.T) {
	const changelog = "# Changelog\n\n## 1.4.0 (unreleased)\nIt does more.\n\n### Look\n- Next.\n\n## 1.3.0 - 2026-05-01\n- Three.\n  More.\n### Details\n- A.\n\n## v1.2.0\n\n## 1.1.0\n- One.\n"
	for version, want := range map[string]string{
		"": "It does more.\n\n### Look\n- Next.", "v1.4.0": "It does more.\n\n### Look\n- Next.", "v1.3.0": "- Three.\n  More.\n### Details\n- A.", "v1.2.0": "", "v1.1.0": "- One.", "v1.3": "", "v1.0.0": "",
	} {
		require.Equal(t, want, section(changelog, version), version)
	}
}

// TestRefusals: what is in the way of a release is named, all of it at once; a dry run does
// without a clean checkout, tag and section.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("CHANGELOG.md", "# Changelog\n\n## 1.3.0 (unreleased)\n- Next.\n\n## 1.2.3\n- Works.\n")
	const who = "user.name=Somebody"
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", who, "-c", "user.email=a@example.com", "commit", "-q", "-m", "all"}, {"tag", "v1.2.3"},
	} {
		_, err := git(t.Context(), dir, args...)
		require.NoError(t, err, args)
	}
	o := options{version: "v1.2.3", out: filepath.Join(t.TempDir(), "dist"), targets: []string{"linux/arm64", "linux/amd64", "linux/arm64"}}
	s, key, err := o.check(t.Context(), dir)
	require.NoError(t, err)
	require.Nil(t, key)
	require.Equal(t, "- Works.", s.notes)
	require.Len(t, s.commit, 40)
	require.False(t, s.at.IsZero())
	require.Equal(t, []string{"linux/amd64", "linux/arm64"}, o.targets)

	put("new", "")
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	wrong := options{version: "v1.2.4", out: full, key: filepath.Join(dir, "new"), targets: []string{"linux"}, registry: "example.com/slipway", other: "dist"}
	_, _, err = wrong.check(t.Context(), dir)
	require.ErrorIs(t, err, errRefused)
	for _, problem := range []string{
		`TARGETS: "linux" is not of the form OS/ARCH`, "OUT: " + full + " is not empty", "REGISTRY: there is no bundle to push", `OTHER: "dist" is not of the form DIR@sha256:DIGEST`, "KEY: ", "it is not PEM",
		"the checkout has changes that are in no commit:\n?? new", "has no tag v1.2.4", `CHANGELOG.md has no section "## 1.2.4"`,
	} {
		require.ErrorContains(t, err, problem)
	}
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3+build", "latest"} {
		o := options{version: version, dry: true, out: o.out, targets: o.targets}
		_, _, err := o.check(t.Context(), dir)
		require.ErrorContains(t, err, "VERSION="+version+" is no semantic version")
	}

	o.version, o.dry = "v1.2.4", true
	s, _, err = o.check(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "- Next.", s.notes)
	require.Empty(t, s.commit, "it is that of no commit")
	o.out = filepath.Join(dir, "new")
	_, _, err = o.check(t.Context(), dir)
	require.ErrorContains(t, err, "OUT: ", "it is a file")
}
