// Package kubeconfig reads a user's access to a Kubernetes cluster. What containers get of
// it is one context that needs nothing of the user's machine: no file, no program, no
// address of its own. No error quotes a credential.
package kubeconfig

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
)

// The codes of this package's faults.
const (
	// CodeInvalid: the text is no kubeconfig, or it lacks something: the context, or a file that
	// it names.
	CodeInvalid fault.Code = "ACC-001"
	// CodePlugin: the user of the context gets credentials from a program.
	CodePlugin fault.Code = "ACC-003"
	// CodeLoopback: the server is an address of the user's own machine, which containers
	// do not reach.
	CodeLoopback fault.Code = "ACC-005"
)

// Extract returns a kubeconfig with one context of text, the current one if name is empty.
// Files that it names are in it. readFile reads them; it is nil where they are not those of
// this machine. All faults are reported, and are of class Usage.
func Extract(text []byte, name string, readFile func(path string) ([]byte, error)) ([]byte, error) {
	d, err := decode(text)
	if err != nil {
		return nil, invalid(err)
	}
	of, name, err := d.context(name)
	if err != nil {
		return nil, err
	}
	c, u := slices.IndexFunc(d.Clusters, func(c namedCluster) bool { return c.Name == of.Cluster }), slices.IndexFunc(d.Users, func(u namedUser) bool { return u.Name == of.User })
	switch {
	case c < 0:
		return nil, invalid(fmt.Errorf("context %s is for the cluster %q, which it does not have", name, of.Cluster))
	case u < 0 && of.User != "": // without one the server lets anybody in
		return nil, invalid(fmt.Errorf("context %s is for the user %q, which it does not have", name, of.User))
	}
	at, who := d.Clusters[c].Cluster, user{}
	if u >= 0 {
		who = d.Users[u].User
	}
	files := inliner{read: readFile}
	files.inline("clusters: certificate-authority", &at.CA, &at.CAData)
	files.inline("users: client-certificate", &who.Certificate, &who.CertificateData)
	files.inline("users: client-key", &who.Key, &who.KeyData)
	if who.TokenFile != "" { // which comes before a token
		var token []byte
		files.inline("users: tokenFile", &who.TokenFile, &token)
		who.Token = strings.TrimSpace(string(token))
	}
	err = errors.Join(append(files.errs, at.check(), who.checkPlugins(name, of.Cluster))...)
	if err == nil {
		err = errors.Join(at.checkCA(), who.checkPair())
	}
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(document{
		APIVersion: "v1", Kind: "Config", Current: name,
		Clusters: []namedCluster{{name, at}}, Users: []namedUser{{name, who}}, Contexts: []namedContext{{name, context{name, name}}},
	})
}

// context is the one with that name, or the current one.
func (d document) context(name string) (context, string, error) {
	wanted := cmp.Or(name, d.Current)
	var names []string
	for _, c := range d.Contexts {
		if c.Name == wanted && wanted != "" {
			return c.Context, wanted, nil
		}
		names = append(names, c.Name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return context{}, "", invalid(errors.New("it has no context"))
	case wanted == "":
		return context{}, "", noContext(fmt.Errorf("it has no current context, but %s", strings.Join(names, ", ")))
	}
	return context{}, "", noContext(fmt.Errorf("it has no context %s, but %s", wanted, strings.Join(names, ", ")))
}

// inliner puts what files hold in the place of their names.
type inliner struct {
	read func(path string) ([]byte, error)
	errs []error
}

// inline moves the content of a file into data, unless that has some already, which comes first.
func (i *inliner) inline(field string, file *string, data *[]byte) {
	path := *file
	if *file = ""; path == "" || len(*data) > 0 {
		return
	}
	err := errors.New("files are found only where the kubeconfig is one itself, on the machine that runs slipway")
	if i.read != nil {
		*data, err = i.read(path)
	}
	if err != nil {
		i.errs = append(i.errs, &fault.Fault{
			Code: CodeInvalid, Class: fault.Usage, Op: "read the kubeconfig",
			Fix: "write what the file holds into the kubeconfig: kubectl config view --raw --minify --flatten --context=NAME does so for certificates and keys; put what a tokenFile holds into token",
			Err: bounded.LineError(fmt.Errorf("%s names the file %s: %w", field, path, err)),
		})
	}
}

// check rejects an address that means another machine in a container.
func (c cluster) check() error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return invalid(errors.New("the cluster's server is not a URL with https:// and a host"))
	}
	var errs []error
	for _, f := range [][2]string{{"server", c.Server}, {"proxy-url", c.ProxyURL}} {
		u, err := url.Parse(f[1])
		if err != nil || !isLoopback(u.Hostname()) {
			continue
		}
		fix := "write an address of this machine that containers reach as " + f[0] + " into a copy of the kubeconfig"
		if f[0] == "server" {
			fix += ": https://192.0.2.1:6443; with tls-server-name: " + u.Hostname() + " if the server's certificate is not for that address"
		}
		errs = append(errs, &fault.Fault{
			Code: CodeLoopback, Class: fault.Usage, Op: "read the kubeconfig", Fix: fix,
			Err: bounded.LineError(fmt.Errorf("%s is %s, this machine: steps run in containers, where that is the container itself", f[0], u.Host)),
		})
	}
	return errors.Join(errs...)
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.Unmap().IsLoopback() || ip.IsUnspecified())
}

// checkCA rejects what no client can verify a server with.
func (c cluster) checkCA() error {
	switch {
	case len(c.CAData) == 0:
	case c.Insecure:
		return invalid(errors.New("clusters: insecure-skip-tls-verify is beside certificate-authority, and only one of them can be"))
	case !x509.NewCertPool().AppendCertsFromPEM(c.CAData):
		return invalid(errors.New("clusters: certificate-authority holds no PEM certificate"))
	}
	return nil
}

// checkPair rejects a certificate and a key that no client can use.
func (u user) checkPair() error {
	if len(u.CertificateData)+len(u.KeyData) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(u.CertificateData, u.KeyData); err != nil {
		return invalid(fmt.Errorf("users: client-certificate and client-key cannot be used: %w", err))
	}
	return nil
}

// checkPlugins rejects a user whose credentials come from a program. The remedy works in
// the context, which need not be the current one.
func (u user) checkPlugins(context, cluster string) error {
	var program string
	switch {
	case u.Exec != nil:
		program = "exec: " + u.Exec.Command
	case u.AuthProvider != nil:
		program = "auth-provider: " + u.AuthProvider.Name
	default:
		return nil
	}
	in := " --context=" + fault.Quote(context)
	return &fault.Fault{
		Code: CodePlugin, Class: fault.Usage, Op: "read the kubeconfig",
		Fix: "use the token of a service account: kubectl create serviceaccount slipway -n kube-system" + in + " && kubectl create clusterrolebinding slipway --clusterrole=cluster-admin --serviceaccount=kube-system:slipway" + in + "; " +
			`then kubectl config set-credentials slipway --token="$(kubectl create token slipway -n kube-system --duration=24h` + in + `)" && kubectl config set-context slipway --user=slipway --cluster=` + fault.Quote(cluster) +
			"; and set existing.context: slipway",
		Err: bounded.LineError(fmt.Errorf("its user gets credentials from a program (%s), which steps in containers do not have", program)),
	}
}

func invalid(err error) error {
	return &fault.Fault{Code: CodeInvalid, Class: fault.Usage, Op: "read the kubeconfig", Err: bounded.LineError(err),
		Fix: "name one that works with kubectl: kubectl config view --raw --minify --flatten"}
}

func noContext(err error) error {
	return &fault.Fault{Code: CodeInvalid, Class: fault.Usage, Op: "read the kubeconfig", Err: bounded.LineError(err),
		Fix: "name one of these as context in the configuration"}
}
