// Package kubeconfig reads a user's access to a Kubernetes cluster. What containers get of
// it is one context that needs nothing of the user's machine: no file, no program, no
// address of its own. No error quotes a credential.
package kubeconfig

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	kubernetes "k8s.io/client-go/tools/clientcmd/api/v1"
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
	of, err := contextOf(d, name)
	if err != nil {
		return nil, err
	}
	name = of.Name
	c := slices.IndexFunc(d.Clusters, func(c kubernetes.NamedCluster) bool { return c.Name == of.Context.Cluster })
	u := slices.IndexFunc(d.AuthInfos, func(u kubernetes.NamedAuthInfo) bool { return u.Name == of.Context.AuthInfo })
	switch {
	case c < 0:
		return nil, invalid(fmt.Errorf("context %s is for the cluster %q, which it does not have", name, of.Context.Cluster))
	case u < 0 && of.Context.AuthInfo != "": // without one the server lets anybody in
		return nil, invalid(fmt.Errorf("context %s is for the user %q, which it does not have", name, of.Context.AuthInfo))
	}
	at, who := d.Clusters[c].Cluster, kubernetes.AuthInfo{}
	if u >= 0 {
		who = d.AuthInfos[u].AuthInfo
	}
	at.Extensions, who.Extensions = nil, nil
	files := inliner{read: readFile}
	files.inline("clusters: certificate-authority", &at.CertificateAuthority, &at.CertificateAuthorityData)
	files.inline("users: client-certificate", &who.ClientCertificate, &who.ClientCertificateData)
	files.inline("users: client-key", &who.ClientKey, &who.ClientKeyData)
	if who.TokenFile != "" { // which comes before a token
		var token []byte
		files.inline("users: tokenFile", &who.TokenFile, &token)
		who.Token = strings.TrimSpace(string(token))
	}
	if err = errors.Join(append(files.errs, checkAddresses(at), checkPlugins(who, name, of.Context.Cluster))...); err != nil {
		return nil, err
	}
	return yaml.Marshal(kubernetes.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []kubernetes.NamedCluster{{Name: name, Cluster: at}}, AuthInfos: []kubernetes.NamedAuthInfo{{Name: name, AuthInfo: who}},
		Contexts: []kubernetes.NamedContext{{Name: name, Context: kubernetes.Context{Cluster: name, AuthInfo: name}}},
	})
}

// contextOf is the context of that name, or the current one.
func contextOf(d kubernetes.Config, name string) (of kubernetes.NamedContext, err error) {
	wanted := cmp.Or(name, d.CurrentContext)
	var names []string
	for _, c := range d.Contexts {
		if c.Name == wanted && wanted != "" {
			return c, nil
		}
		names = append(names, c.Name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return of, invalid(errors.New("it has no context"))
	case wanted == "":
		return of, noContext(fmt.Errorf("it has no current context, but %s", strings.Join(names, ", ")))
	}
	return of, noContext(fmt.Errorf("it has no context %s, but %s", wanted, strings.Join(names, ", ")))
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

// checkAddresses rejects an address that means another machine in a container.
func checkAddresses(c kubernetes.Cluster) error {
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

// checkPlugins rejects a user whose credentials come from a program. The remedy works in
// the context, which need not be the current one.
func checkPlugins(u kubernetes.AuthInfo, context, cluster string) error {
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

// lineRE finds the line in the message of a YAML parser, which may quote the text.
var lineRE = regexp.MustCompile(`line \d+`)

// decode reads a kubeconfig. By way of JSON, a number is no text: kubectl rejects it, too.
func decode(text []byte) (d kubernetes.Config, err error) {
	if path := strings.TrimSpace(string(text)); strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "\n{") {
		return d, errPath
	}
	plain, err := yaml.YAMLToJSON(text)
	if err != nil {
		at := lineRE.FindString(err.Error())
		return d, errors.New(strings.TrimSuffix("it is not YAML as kubectl writes it ("+at+")", " ()"))
	}
	if err = json.Unmarshal(plain, &d); err == nil {
		return d, checkNames(d)
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok || wrong.Field == "":
		return d, errors.New("it is not YAML as kubectl writes it")
	case wrong.Type == reflect.TypeFor[[]byte]():
		return d, fmt.Errorf("%s is not base64", wrong.Field)
	}
	return d, fmt.Errorf("%s is not of type %s (put text in quotes)", wrong.Field, wrong.Type)
}

// errPath is the error of a text that is a path, as the variable KUBECONFIG has it.
var errPath = errors.New("it is the path of a file, and not what the file holds: write existing.kubeconfig: file:PATH")

// checkNames rejects names that are there twice, as kubectl does, and names that would be several
// lines of a command.
func checkNames(d kubernetes.Config) error {
	seen := map[string]bool{}
	check := func(list, name string) error {
		switch {
		case name != bounded.Line(name):
			return fmt.Errorf("it has %q in %s, which cannot be printed", name, list)
		case seen[list+"/"+name]:
			return fmt.Errorf("it has %q twice in %s", name, list)
		}
		seen[list+"/"+name] = true
		return nil
	}
	var err error
	for _, c := range d.Clusters {
		err = cmp.Or(err, check("clusters", c.Name))
	}
	for _, c := range d.Contexts {
		err = cmp.Or(err, check("contexts", c.Name))
	}
	for _, u := range d.AuthInfos {
		err = cmp.Or(err, check("users", u.Name))
	}
	return err
}

// Secrets calls hide with each credential in what Extract returned, as it is written there
// and decoded.
func Secrets(text []byte, hide func(credential string)) {
	d, err := decode(text)
	if err != nil {
		hide(string(text))
		return
	}
	for _, u := range d.AuthInfos {
		key := u.AuthInfo.ClientKeyData
		for _, credential := range []string{u.AuthInfo.Token, u.AuthInfo.Password, base64.StdEncoding.EncodeToString(key), string(key)} {
			if credential != "" {
				hide(credential)
			}
		}
	}
}
