package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/bounded"
)

// twice refuses names that are there twice, as kubectl does, and those that would be several lines of
// a command.
func (d document) twice() error {
	var errs []error
	once := func(list string, n int, name func(int) string) {
		seen := map[string]bool{}
		for i := range n {
			if name(i) != bounded.Line(name(i)) {
				errs = append(errs, invalid(fmt.Errorf("it has %q in %s, which cannot be printed", name(i), list)))
			}
			if seen[name(i)] {
				errs = append(errs, invalid(fmt.Errorf("it has %q twice in %s", name(i), list)))
			}
			seen[name(i)] = true
		}
	}
	once("clusters", len(d.Clusters), func(i int) string { return d.Clusters[i].Name })
	once("contexts", len(d.Contexts), func(i int) string { return d.Contexts[i].Name })
	once("users", len(d.Users), func(i int) string { return d.Users[i].Name })
	return errors.Join(errs...)
}

// data is a field in base64.
func (e entry) data(list, field string) ([]byte, error) {
	out, err := base64.StdEncoding.DecodeString(e.text(field))
	if err != nil {
		return nil, invalid(fmt.Errorf("%s: %s is not base64", list, field))
	}
	return out, nil
}

// checkCluster refuses what no client can reach a cluster with.
func checkCluster(cluster entry) error {
	if cluster.text("certificate-authority-data") == "" {
		return nil
	}
	ca, err := cluster.data("clusters", "certificate-authority-data")
	insecure, _ := cluster["insecure-skip-tls-verify"].(bool)
	switch {
	case err != nil:
		return err
	case insecure:
		return invalid(errors.New("clusters: insecure-skip-tls-verify is beside certificate-authority, and only one of them can be"))
	case !x509.NewCertPool().AppendCertsFromPEM(ca):
		return invalid(errors.New("clusters: certificate-authority holds no PEM certificate"))
	}
	return nil
}

// checkUser refuses credentials that no client can use.
func checkUser(user entry) error {
	has := func(field string) bool { return user.text(field) != "" }
	switch {
	case has("client-certificate-data") && !has("client-key-data"):
		return invalid(errors.New("users: client-certificate is without client-key"))
	case has("client-key-data") && !has("client-certificate-data"):
		return invalid(errors.New("users: client-key is without client-certificate"))
	case !has("client-key-data"):
		return nil
	}
	certificate, err := user.data("users", "client-certificate-data")
	if err != nil {
		return err
	}
	key, err := user.data("users", "client-key-data")
	if err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return invalid(fmt.Errorf("users: client-certificate and client-key cannot be used: %w", err))
	}
	return nil
}
