package preorchestrator

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
)

// keyPair is a new key, and its PEM.
func keyPair(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

// sshServer serves /team/platform.git, and an empty one, to who has the key.
func sshServer(t *testing.T, host ssh.Signer, reader ssh.PublicKey) (address string) {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(reader.Marshal()) {
			return nil, errors.New("who are you?")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	return l.Addr().String()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		for r := range asked {
			var command struct{ Line string }
			_ = ssh.Unmarshal(r.Payload, &command)
			_ = r.Reply(true, nil)
			end := uint32(0)
			switch command.Line {
			case "git-upload-pack '/team/platform.git'":
				line := strings.Repeat("1", 40) + " refs/heads/main\x00agent=git/2\n"
				_, _ = fmt.Fprintf(channel, "%04x%s0000", len(line)+4, line)
				_, _ = io.Copy(io.Discard, channel) // the client says what it wants
			case "git-upload-pack '/team/empty.git'":
				_, _ = channel.Write([]byte("0000"))
			default:
				_, _ = channel.Stderr().Write([]byte("Gitea: no such\nrepository\n"))
				end = 1
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{end}))
			_ = channel.Close()
		}
	}
}

func TestARepositoryIsAskedBySSH(t *testing.T) {
	host, _ := keyPair(t)
	other, another := keyPair(t)
	reader, key := keyPair(t)
	address := sshServer(t, host, reader.PublicKey())
	known := knownhosts.Line([]string{address}, host.PublicKey())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = silent.Close() })
	for what, c := range map[string]struct {
		url, known string
		key        []byte
		want       string
	}{
		"may be read":      {"ssh://git@" + address + "/team/platform.git", known, key, ""},
		"another key":      {"ssh://git@" + address + "/team/platform.git", known, another, "unable to authenticate"},
		"no key":           {"ssh://git@" + address + "/team/platform.git", known, []byte("none"), "read the private key: ssh: no key found"},
		"another host":     {"ssh://git@" + address + "/team/platform.git", knownhosts.Line([]string{address}, other.PublicKey()), key, "knownhosts: key mismatch"},
		"an unknown host":  {"ssh://git@" + address + "/team/platform.git", knownhosts.Line([]string{"git.example.com"}, host.PublicKey()), key, "knownhosts: key is unknown"},
		"no known hosts":   {"ssh://git@" + address + "/team/platform.git", "git.example.com ssh-ed25519 AAAA", key, "read the known hosts: "},
		"another name":     {"ssh://git@" + address + "/team/platfrom.git", known, key, "Gitea: no such repository"},
		"an empty one":     {"ssh://git@" + address + "/team/empty.git", known, key, "remote repository is empty"},
		"not from here":    {"ssh://git@127.0.0.1:1/team/platform.git", known, key, ""},
		"it says nothing":  {"ssh://git@" + silent.Addr().String() + "/team/platform.git", known, key, ""},
		"an unknown name":  {"git@git.slipway.invalid:team/platform.git", known, key, ""},
		"a quote is a one": {"ssh://git@" + address + "/team/plat'form.git", known, key, "Gitea: no such repository"},
	} {
		t.Run(what, func(t *testing.T) {
			_, env := preparing(t, "")
			err := askRepository(t.Context(), env, contract.RepositoryInput{URL: c.url, Key: true, KnownHosts: c.known}, c.key)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &fault.Fault{Code: gitserver.CodeRepository})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), string(c.key))
		})
	}
}
