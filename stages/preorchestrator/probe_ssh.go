package preorchestrator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/slipway-sh/slipway/stages/contract"
)

// branchesBySSH has a repository that is read by SSH list its branches. key is the private key,
// PEM. An error that Argo CD would get as well is an answer.
func branchesBySSH(ctx context.Context, in contract.RepositoryInput, key []byte) error {
	at, err := transport.NewEndpoint(in.URL)
	if err != nil {
		return answer{err}
	}
	host := net.JoinHostPort(at.Host, strconv.Itoa(cmp.Or(at.Port, 22)))
	config, err := sshConfig(cmp.Or(at.User, "git"), host, in.KnownHosts, key)
	if err != nil {
		return answer{err}
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // what reads from it ends
	defer func() { _ = conn.Close() }()
	shaken, channels, requests, err := ssh.NewClientConn(conn, host, config)
	if err != nil {
		if knownhosts.IsHostKeyChanged(err) || knownhosts.IsHostUnknown(err) || strings.Contains(err.Error(), "unable to authenticate") { // which has no type
			return answer{err}
		}
		return err // it may be busy, for one
	}
	client := ssh.NewClient(shaken, channels, requests)
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return err
	}
	return uploadPack(session, at.Path)
}

// sshConfig is what a server is asked with: one that shows none of the known keys is refused.
func sshConfig(user, host, known string, key []byte) (*ssh.ClientConfig, error) {
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("read the private key: %w", err)
	}
	dir, err := os.MkdirTemp("", "known-hosts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(file, []byte(known), 0o600); err != nil {
		return nil, err
	}
	hosts, err := knownhosts.NewDB(file)
	if err != nil {
		return nil, fmt.Errorf("read the known hosts: %w", err)
	}
	return &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: hosts.HostKeyCallback(), HostKeyAlgorithms: hosts.HostKeyAlgorithms(host),
	}, nil
}

// uploadPack begins a fetch of the repository at path, and ends it when the branches are known.
func uploadPack(session *ssh.Session, path string) error {
	var out, errs bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader("0000"), &out, &errs // nothing is wanted
	err := session.Run("git-upload-pack '" + strings.ReplaceAll(path, "'", `'\''`) + "'")
	if _, missing := errors.AsType[*ssh.ExitMissingError](err); missing && out.Len() == 0 {
		return err // the connection was cut
	}
	if err := packp.NewAdvRefs().Decode(&out); err == nil {
		return nil
	}
	if said := strings.Join(strings.Fields(errs.String()), " "); said != "" {
		return answer{errors.New(said)}
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: it ended well, before it read what is wanted
		return answer{err}
	}
	return answer{transport.ErrEmptyRemoteRepository}
}
