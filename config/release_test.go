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
		"https://git.example.com/p.git@v1.31.4+k3s1":                        {URL: "https://git.example.com/p.git", Version: "v1.31.4+k3s1"},
		"https://git.example.com/p.git@app@1.2.0":                           {URL: "https://git.example.com/p.git", Version: "app@1.2.0"},
		"https://git.example.com/p.git//a/b@@scope/app@1.2.0#" + digest:     {URL: "https://git.example.com/p.git", Folder: "a/b", Version: "@scope/app@1.2.0", Digest: digest},
		"https://git.example.com/p.git@feature/#12-größe":                   {URL: "https://git.example.com/p.git", Version: "feature/#12-größe"},
		"https://git.example.com/p.git@#1":                                  {URL: "https://git.example.com/p.git", Version: "#1"},
		"https://git.example.com/p.git@a(b)&c;d'e$f":                        {URL: "https://git.example.com/p.git", Version: "a(b)&c;d'e$f"},
		"https://git.example.com/p.git//my folder/größe+1 (~2)@v1":          {URL: "https://git.example.com/p.git", Folder: "my folder/größe+1 (~2)", Version: "v1"},
		"https://[2001:db8::1]/team/p.git@v1":                               {URL: "https://[2001:db8::1]/team/p.git", Version: "v1"},
		"ssh://git@[2001:db8::1]:2222/team/p.git@v1":                        {URL: "ssh://git@[2001:db8::1]:2222/team/p.git", Version: "v1"},
	} {
		c, err := load(text)
		require.NoError(t, err, text)
		got, ok := c.ReleaseInGit()
		require.True(t, ok)
		require.Equal(t, want, got)
		require.False(t, c.ReleaseIsPath())
	}
	for text, want := range map[string]string{
		"https://git.example.com/team/platform.git":           "got a URL without a version, want a release in a Git repository",
		"https://git.example.com/team/platform.git?ref=v1.0":  "got a URL with a query",
		"git::https://git.example.com/p.git//x?ref=v1":        "got a URL with a query",
		"git@git.example.com:team/p.git@v1":                   "got an SSH address that is no URL, want ssh://git@git.example.com/team/platform.git@v1.2.0",
		"ssh://-oProxyCommand=id/p@v1":                        "got another kind of URL",
		"ssh://-x/p@v1":                                       "got another kind of URL",
		"ssh://-x@git.example.com/p@v1":                       "got another kind of URL",
		"https://-x/p@v1":                                     "got another kind of URL",
		"ext::sh://git.example.com/p@v1":                      "got another kind of URL",
		"file:///srv/p.git@v1":                                "got another kind of URL",
		"https://git.example.com:70000/p.git@v1":              "got another kind of URL",
		"https://org@dev.azure.com/org/p@main":                "got a URL with user or password",
		"https://git.example.com/p.git@v1..v2":                `got "v1..v2" as version`,
		"https://git.example.com/p.git@v1.lock":               "by a name that git takes",
		"https://git.example.com/p.git@a:b":                   "by a name that git takes",
		"https://git.example.com/p.git@v 1":                   "by a name that git takes",
		"https://git.example.com/p.git@main@{1}":              "by a name that git takes",
		"https://git.example.com/p.git@":                      "by a name that git takes",
		"https://git.example.com/p.git//-x@v1":                "got another kind of URL",
		"https://git.example.com@v1":                          "got another kind of URL",
		"ftp://git.example.com/platform@v1":                   "got another kind of URL",
		"https://me:secret@git.example.com/platform@v1":       "got a URL with user or password",
		"https://git.example.com/platform//../etc@v1":         "got another kind of URL",
		"https://git.example.com/platform@v1#sha256:12":       "got another kind of URL",
		"http://git.example.com/platform@v1":                  "got a release by plain HTTP",
		"https://git.example.com/platform@--upload-pack=evil": "by a name that git takes",
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
