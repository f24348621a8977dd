package config_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	authority "github.com/slipway-sh/slipway/config/certificate"
)

// repository loads a configuration that names a repository of the user's.
func repository(t *testing.T, fields map[string]string) error {
	t.Helper()
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	_, err = config.Load(v1("git: "+string(text)+"\n"), config.Options{DefaultProvider: "local"})
	return err
}

// TestNamesThatGitTakes are taken, and no others. git itself says which.
func TestNamesThatGitTakes(t *testing.T) {
	for _, name := range []string{
		"main", "v1.31.4+k3s1", "release/1.2", "app@1.2.0", "@scope/app@1.2.0", "#1", "feature/#12", "größe", "a(b)", "a;b", "a&b", "$x", "a'b", `a"b`, "x%y", "1.0", "refs/heads/main", "a.b", "a-", "+x", "{x}", "a@", "a=b,c!",
		"a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a@{b", "a\tb", "--upload-pack=x", "-x",
	} {
		_, known := exec.LookPath("git")
		require.NoError(t, known)
		takes := exec.CommandContext(t.Context(), "git", "check-ref-format", "--branch", name).Run() == nil
		err := repository(t, map[string]string{"url": "https://git.example.com/p.git", "revision": name})
		if takes {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "git.revision", name)
	}
}

// TestARepositoryBySSH has an address as git takes it, and known hosts as OpenSSH writes them.
func TestARepositoryBySSH(t *testing.T) {
	const key = "AAAAC3NzaC1lZDI1NTE5AAAAIHbXz0rVtY7b0S0r7G1rj1F0mC0Yh7QmF5S2r8m1x2y3"
	by := func(url, hosts string) error {
		return repository(t, map[string]string{"url": url, "sshKey": "file:key", "knownHosts": hosts, "path": "größe/my folder+1"})
	}
	for _, url := range []string{
		"git@git.example.com:team/p.git", "git@git.example.com:/srv/git/p.git", "git@git.example.com:~team/p.git", "git@ssh.dev.azure.com:v3/org/My%20Project/repo",
		"ssh://git@[2001:db8::1]:22/team/p.git", "ssh://git@git.example.com:2222/p.git",
	} {
		require.NoError(t, by(url, "git.example.com ssh-ed25519 "+key), url)
	}
	for _, url := range []string{"git@[2001:db8::1]:team/p.git", "git.example.com:p.git", "git@git.example.com:", "git@git.example.com://p", "ssh://git@git.example.com:70000/p.git"} {
		require.ErrorContains(t, by(url, "git.example.com ssh-ed25519 "+key), "git.url", url)
	}
	for _, line := range []string{
		"@cert-authority *.example.com ssh-ed25519 " + key, "@revoked git.example.com ssh-ed25519 " + key, "|1|vNkC7PbRe/tnBJozD6KMmY5o8u0=|98ilHfEOLuzxakuJZmdrtWWc0bw= ecdsa-sha2-nistp256 AAAA",
		"[git.example.com]:2222 ssh-ed25519 " + key + " a comment", "*.example.com,!bad.example.com ssh-ed25519 " + key, "git.example.com\tssh-ed25519\t" + key, "2001:db8::1 sk-ssh-ed25519@openssh.com " + key,
	} {
		require.NoError(t, by("git@git.example.com:p.git", "# "+line+"\n"+line+"\r\n\n"), line)
	}
	for _, line := range []string{"git.example.com ssh-ed25519", "@other git.example.com ssh-ed25519 " + key, "@revoked ssh-ed25519 " + key, "ssh-ed25519 " + key} {
		require.ErrorContains(t, by("git@git.example.com:p.git", line), "git.knownHosts: got a line that is not in the form of known_hosts", line)
	}
	require.ErrorContains(t, by("ssh://git@git.example.com:2222/p.git", ""), "ssh-keyscan -p 2222 git.example.com")
	require.ErrorContains(t, by("ssh://git@[2001:db8::1]/p.git", ""), "ssh-keyscan 2001:db8::1")
	require.ErrorContains(t, by("git@git.example.com:p.git", ""), "ssh-keyscan git.example.com")
}

// TestNoRepositoryIsAnOptionOrACommand: neither for git and ssh, nor for a shell into which a remedy is
// copied; and no other program fetches it.
func TestNoRepositoryIsAnOptionOrACommand(t *testing.T) {
	const hosts = "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHbXz0rVtY7b0S0r7G1rj1F0mC0Yh7QmF5S2r8m1x2y3"
	for _, url := range []string{
		"--upload-pack=touch p", "-x@git.example.com:p.git", "git@-x:p.git", "git@git.example.com:-x/p.git", "git@git.example.com:p\n--upload-pack=x", "git@git.example.com:p\r.git",
		"ext::sh -c touch% p", "ext::ssh://git@git.example.com/p", "git::https://git.example.com/p.git", "file:///srv/p.git", "git@$(id):p.git", "git@git.example.com;id:p.git",
		"ssh://-oProxyCommand=id/p.git", "ssh://-x/p.git", "ssh://-x@git.example.com/p.git", "ssh://git@-x:22/p.git", "ssh://$(id)/p.git", "ssh://git@a;id/p.git", "ssh://git@a|id/p.git",
		"ssh://git@a'b/p.git", "ssh://git:word@git.example.com/p.git", "ssh://git@git.example.com/p\n--x", "ssh://git%0a@git.example.com/p.git", "git+ssh://git@git.example.com/p.git",
		"https://-x/p.git", "https://$(id)/p.git", "https://a;id/p.git", "https://git.example.com/p\n.git", "http://git.example.com/p.git", "HTTPS://git.example.com/p.git?x", "git://git.example.com/p.git",
		"/srv/p.git", "../p.git", "C:\\p.git",
	} {
		fields := map[string]string{"url": url}
		if !strings.HasPrefix(url, "http") {
			fields["sshKey"] = "file:key"
		}
		for _, known := range []string{"", hosts} {
			fields["knownHosts"] = known
			err := repository(t, fields)
			require.ErrorContains(t, err, "git.url: ", url)
			for _, part := range []string{"keyscan -x", "keyscan $", "keyscan -o", "keyscan a"} {
				require.NotContains(t, err.Error(), part, url)
			}
		}
	}
	for _, url := range []string{"https://git.example.com/p.git", "https://[2001:db8::1]:8443/p.git", "https://git_1.example.com/-x", "https://größe.example.com/p"} {
		require.NoError(t, repository(t, map[string]string{"url": url}), url)
	}
}

// TestTextAroundCertificates is what tools write, and counts for nothing; what is no certificate
// is told.
func TestTextAroundCertificates(t *testing.T) {
	ca, err := authority.NewCA("demo", time.Now())
	require.NoError(t, err)
	pem := string(ca.Certificate)
	given := func(text string) error {
		return repository(t, map[string]string{"url": "https://git.example.com/p.git", "ca": text})
	}
	for _, text := range []string{pem, pem + pem, "Bag Attributes\n" + pem, pem + "Bag Attributes: <No Attributes>\n", "a\n" + pem + "\nsubject=CN = x\n\n" + pem + "the end\n", strings.ReplaceAll(pem, "\n", "\r\n")} {
		require.NoError(t, given(text), text)
	}
	for says, text := range map[string]string{
		"got text that is not PEM": "the end", "got a private key": pem + string(ca.Key), "got 1 certificates, and 1 that are malformed PEM": pem + pem[:len(pem)-30],
		"got a malformed certificate (number 2)": pem + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		require.ErrorContains(t, given(text), "git.ca: "+says)
	}
}
