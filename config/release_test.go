package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

func TestAReleaseInAGitRepository(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	load := func(release string) (*config.Config, error) {
		return config.Load(v1("platform: {release: \""+release+"\"}\n"), config.Options{DefaultProvider: "local"})
	}
	for text, want := range map[string]config.GitRelease{
		"https://git.example.com/team/platform.git@v1.2.0":                  {URL: "https://git.example.com/team/platform.git", Version: "v1.2.0"},
		"https://git.example.com/team/platform//releases/one@main":          {URL: "https://git.example.com/team/platform", Folder: "releases/one", Version: "main"},
		"ssh://git@git.example.com:2222/team/platform.git@v1.2.0#" + digest: {URL: "ssh://git@git.example.com:2222/team/platform.git", Version: "v1.2.0", Digest: digest},
		"http://192.0.2.1:8080/platform.git@v1.2.0#" + digest:               {URL: "http://192.0.2.1:8080/platform.git", Version: "v1.2.0", Digest: digest},
	} {
		c, err := load(text)
		require.NoError(t, err, text)
		got, ok := c.ReleaseInGit()
		require.True(t, ok)
		require.Equal(t, want, got)
		require.False(t, c.ReleaseIsPath())
	}
	for text, want := range map[string]string{
		"https://git.example.com/team/platform.git":           "got another kind of URL, want a release in a Git repository",
		"https://git.example.com@v1":                          "got another kind of URL",
		"ftp://git.example.com/platform@v1":                   "got another kind of URL",
		"https://me:secret@git.example.com/platform@v1":       "got a URL with user or password",
		"https://git.example.com/platform//../etc@v1":         "got another kind of URL",
		"https://git.example.com/platform@v1#sha256:12":       "got another kind of URL",
		"http://git.example.com/platform@v1":                  "got a release by plain HTTP",
		"https://git.example.com/platform@--upload-pack=evil": "got another kind of URL",
	} {
		_, err := load(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "secret")
	}
	c, err := load("./mine")
	require.NoError(t, err)
	_, ok := c.ReleaseInGit()
	require.False(t, ok)
	require.True(t, c.ReleaseIsPath())
}
