package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func pool(p pair) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.cert)
	return pool
}

func TestCertificatesVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := ensurePKI(dir, []string{"cluster", "10.0.0.7"}, time.Now())
	require.NoError(t, err)

	for authority, wanted := range requests([]string{"cluster", "10.0.0.7"}) {
		for _, r := range wanted {
			var usages []x509.ExtKeyUsage
			if r.client {
				usages = append(usages, x509.ExtKeyUsageClientAuth)
			}
			if r.server {
				usages = append(usages, x509.ExtKeyUsageServerAuth)
			}
			for _, usage := range usages {
				_, err := p.pairs[r.file].cert.Verify(x509.VerifyOptions{Roots: pool(p.pairs[authority]), KeyUsages: []x509.ExtKeyUsage{usage}})
				require.NoError(t, err, r.file)
			}
			for _, other := range []string{clusterCA, frontCA, etcdCA} {
				if other != authority {
					_, err := p.pairs[r.file].cert.Verify(x509.VerifyOptions{Roots: pool(p.pairs[other]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
					require.Error(t, err, "%s must not pass for one of %s", r.file, other)
				}
			}
			for _, n := range r.names {
				require.NoError(t, p.pairs[r.file].cert.VerifyHostname(n))
			}
			require.Error(t, p.pairs[r.file].cert.VerifyHostname("example.org"))
		}
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
}

func TestMutualTLSWithTheIssuedCertificates(t *testing.T) {
	p, err := ensurePKI(t.TempDir(), []string{"127.0.0.1"}, time.Now())
	require.NoError(t, err)
	tlsPair := func(name string) tls.Certificate {
		c, err := tls.X509KeyPair(p.pairs[name].certPEM, p.pairs[name].keyPEM)
		require.NoError(t, err)
		return c
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.Organization[0]))
	}))
	server.TLS, err = p.mutual("apiserver")
	require.NoError(t, err)
	server.StartTLS()
	defer server.Close()
	get := func(client string) error {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(p.pairs[clusterCA]), Certificates: []tls.Certificate{tlsPair(client)}}}
		defer transport.CloseIdleConnections()
		r, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err == nil {
			release(r.Body)
		}
		return err
	}
	require.NoError(t, get("admin"))
	require.Error(t, get("etcd-client"), "a certificate of etcd's authority is not one of the cluster's")
	require.Error(t, get("kubelet-server"), "a server's certificate is not a client's")
}

func TestCertificatesAreKeptAndRenewed(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	first, err := ensurePKI(dir, []string{"cluster", "10.0.0.7"}, now)
	require.NoError(t, err)
	serial := func(p *pki, name string) string { return p.pairs[name].cert.SerialNumber.String() }

	t.Run("unchanged", func(t *testing.T) {
		p, err := ensurePKI(dir, []string{"10.0.0.7", "cluster", "cluster"}, now.Add(time.Hour))
		require.NoError(t, err)
		for authority, issued := range requests(nil) {
			require.Equal(t, serial(first, authority), serial(p, authority), authority)
			for _, r := range issued {
				require.Equal(t, !r.server, serial(first, r.file) == serial(p, r.file), r.file)
			}
		}
	})
	t.Run("another address", func(t *testing.T) {
		p, err := ensurePKI(dir, []string{"cluster", "10.0.0.8"}, now)
		require.NoError(t, err)
		require.NotEqual(t, serial(first, "apiserver"), serial(p, "apiserver"))
		require.True(t, p.pairs["apiserver"].cert.IPAddresses[0].Equal(net.ParseIP("10.0.0.8")))
		require.Equal(t, first.pairs["apiserver"].keyPEM, p.pairs["apiserver"].keyPEM)
		require.Equal(t, serial(first, "ca"), serial(p, "ca"))
		require.Equal(t, serial(first, "admin"), serial(p, "admin"))
	})
	t.Run("soon expired", func(t *testing.T) {
		p, err := ensurePKI(dir, []string{"cluster", "10.0.0.8"}, now.Add(certificateLife-renewBefore+time.Hour))
		require.NoError(t, err)
		require.NotEqual(t, serial(first, "admin"), serial(p, "admin"))
		require.Equal(t, serial(first, "ca"), serial(p, "ca"))
	})
	t.Run("damaged", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("half a cert"), 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "scheduler.key")))
		p, err := ensurePKI(dir, []string{"cluster", "10.0.0.8"}, now)
		require.NoError(t, err)
		require.NotEqual(t, serial(first, "ca"), serial(p, "ca"))
		for _, name := range []string{"admin", "scheduler", "apiserver"} {
			_, err := p.pairs[name].cert.Verify(x509.VerifyOptions{Roots: pool(p.pairs["ca"]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			require.NoError(t, err, name)
		}
	})
}
