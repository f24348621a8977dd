package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// How long certificates are valid, and how long before their end a start issues
// new ones.
const (
	authorityLife   = 20 * 365 * 24 * time.Hour
	certificateLife = 2 * 365 * 24 * time.Hour
	renewBefore     = 60 * 24 * time.Hour
)

type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
	// certPEM and keyPEM are the same, as they are on disk.
	certPEM, keyPEM []byte
}

type request struct {
	file   string // name of its files in the pki directory, without .crt and .key
	name   string // common name
	groups []string
	names  []string // DNS names and addresses
	client bool
	server bool
}

// pki is the node's set of authorities and certificates, by file name.
type pki struct {
	dir   string
	now   time.Time
	pairs map[string]pair
}

// The authorities. Each vouches for one thing only: a certificate of etcd's is
// not a Kubernetes user.
const (
	clusterCA = "ca"
	frontCA   = "front-proxy-ca"
	etcdCA    = "etcd-ca"
)

// requests are all certificates of a node, by the authority that signs them.
// names are the API server's.
func requests(names []string) map[string][]request {
	loopback := []string{"localhost", "127.0.0.1"}
	return map[string][]request{
		clusterCA: {
			{file: "apiserver", name: "kube-apiserver", names: names, server: true},
			{file: "apiserver-kubelet-client", name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}, client: true},
			{file: "kubelet-server", name: nodeName, names: append([]string{nodeName, nodeAddress}, loopback...), server: true},
			{file: "kubelet", name: "system:node:" + nodeName, groups: []string{"system:nodes"}, client: true},
			{file: "controller-manager", name: "system:kube-controller-manager", client: true},
			{file: "scheduler", name: "system:kube-scheduler", client: true},
			{file: "proxy", name: "system:kube-proxy", client: true},
			{file: "admin", name: "slipway-admin", groups: []string{"system:masters"}, client: true},
		},
		frontCA: {{file: "front-proxy-client", name: "front-proxy-client", client: true}},
		etcdCA: {
			{file: "etcd", name: "etcd", names: loopback, server: true, client: true},
			{file: "etcd-client", name: "kube-apiserver", client: true},
		},
	}
}

// ensurePKI reads the certificates in dir. It issues those of servers, and the others if they are
// missing, do not match their key, were signed by another authority, or end soon.
func ensurePKI(dir string, names []string, now time.Time) (*pki, error) {
	p := &pki{dir: dir, now: now, pairs: map[string]pair{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of keys: %w", err)
	}
	if _, err := p.key("service-account"); err != nil {
		return nil, err
	}
	for authority, wanted := range requests(names) {
		ca, err := p.authority(authority)
		if err != nil {
			return nil, err
		}
		for _, r := range wanted {
			if err := p.issue(ca, r); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// mutual is the TLS of a server with the certificate in file, for clients with a certificate of
// the cluster's authority.
func (p *pki) mutual(file string) (*tls.Config, error) {
	own, err := tls.X509KeyPair(p.pairs[file].certPEM, p.pairs[file].keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s: %w", file, err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(p.pairs[clusterCA].cert)
	return &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}, nil
}

func (p *pki) authority(file string) (pair, error) {
	if ca, err := p.read(file); err == nil && ca.cert.IsCA && p.current(ca.cert) {
		p.pairs[file] = ca
		return ca, nil
	}
	key, err := p.key(file)
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		// The serial number is part of the name: a new authority must not pass
		// for the old one with another key.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("slipway %s %d", file, p.now.Unix())},
		NotAfter:              p.now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return p.sign(file, template, key, nil)
}

// issue makes r's certificate unless a good one exists. A server's certificate is always new, because
// the container's address changes.
func (p *pki) issue(ca pair, r request) error {
	if old, err := p.read(r.file); err == nil && !r.server && p.current(old.cert) && old.cert.CheckSignatureFrom(ca.cert) == nil {
		p.pairs[r.file] = old
		return nil
	}
	key, err := p.key(r.file)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: r.name, Organization: r.groups},
		NotAfter: p.now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	template.DNSNames, template.IPAddresses = splitNames(r.names)
	if r.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if r.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	_, err = p.sign(r.file, template, key, &ca)
	return err
}

// sign completes the template, signs it (by itself without an authority) and
// writes it.
func (p *pki) sign(file string, template *x509.Certificate, key pair, ca *pair) (pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = p.now.Add(-time.Hour)
	parent, signer := template, key.key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate %s: %w", file, err)
	}
	if key.cert, err = x509.ParseCertificate(der); err != nil {
		return pair{}, fmt.Errorf("read back the certificate %s: %w", file, err)
	}
	key.certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeFile(filepath.Join(p.dir, file+".crt"), key.certPEM, 0o600); err != nil {
		return pair{}, err
	}
	p.pairs[file] = key
	return key, nil
}

// key reads or makes a private key; the pair has no certificate yet.
func (p *pki) key(file string) (pair, error) {
	path := filepath.Join(p.dir, file+".key")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = keyutil.MakeEllipticPrivateKeyPEM(); err == nil {
			err = writeFile(path, text, 0o600)
		}
	}
	if err != nil {
		return pair{}, fmt.Errorf("read or make the key %s: %w", file, err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return pair{}, fmt.Errorf("read the key %s: %w", file, err)
	}
	return pair{key: key.(crypto.Signer), keyPEM: text}, nil // as all kinds are
}

// read is the pair on disk; an error when either half is missing, broken, or
// they do not belong together.
func (p *pki) read(file string) (pair, error) {
	certPEM, err := os.ReadFile(filepath.Join(p.dir, file+".crt"))
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(p.dir, file+".key"))
	if err != nil {
		return pair{}, err
	}
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: both.Leaf, key: both.PrivateKey.(crypto.Signer), certPEM: certPEM, keyPEM: keyPEM}, nil
}

func (p *pki) current(c *x509.Certificate) bool {
	return p.now.After(c.NotBefore) && p.now.Add(renewBefore).Before(c.NotAfter)
}

// splitNames separates addresses from DNS names; both come sorted and once.
func splitNames(all []string) (names []string, addresses []net.IP) {
	for _, n := range slices.Compact(slices.Sorted(slices.Values(all))) {
		if ip := net.ParseIP(n); ip != nil {
			addresses = append(addresses, ip)
		} else if n != "" {
			names = append(names, strings.ToLower(n))
		}
	}
	return names, addresses
}

// writeFile replaces a file in one step, so that a kill leaves the old or the
// new one. A file that already has this content is not touched.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return os.Chmod(path, mode)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory of %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails once it is renamed
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
