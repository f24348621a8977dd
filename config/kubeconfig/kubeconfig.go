// Package kubeconfig reads a user's access to a Kubernetes cluster. What containers get of
// it is one context that needs nothing of the user's machine: no file, no program, no
// address of its own. No error quotes a credential.
package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
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

// document is what is read of a kubeconfig.
type document struct {
	Clusters []struct {
		Name    string `json:"name"`
		Cluster entry  `json:"cluster"`
	} `json:"clusters"`
	Contexts []struct {
		Name    string `json:"name"`
		Context entry  `json:"context"`
	} `json:"contexts"`
	Users []struct {
		Name string `json:"name"`
		User entry  `json:"user"`
	} `json:"users"`
	Current string `json:"current-context"`
}

// entry is a cluster, a user or a context.
type entry map[string]any

func (e entry) text(field string) string {
	text, _ := e[field].(string)
	return text
}

// Extract returns a kubeconfig with one context of text, the current one if name is empty.
// Files that it names are in it. readFile reads them; it is nil where they are not those of
// this machine. All faults are reported, and are of class Usage.
func Extract(text []byte, name string, readFile func(path string) ([]byte, error)) ([]byte, error) {
	var doc document
	if err := yaml.Unmarshal(text, &doc); err != nil {
		if path := strings.TrimSpace(string(text)); strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "\n{") {
			return nil, invalid(errors.New("it is the path of a file, and not what the file holds: write existing.kubeconfig: file:PATH"))
		}
		return nil, invalid(errors.New("it is not YAML as kubectl writes it" + line(err)))
	}
	if err := doc.twice(); err != nil {
		return nil, err
	}
	context, name, err := doc.context(name)
	if err != nil {
		return nil, err
	}
	var cluster, user entry
	if context.text("user") == "" { // the server lets anybody in
		user = entry{}
	}
	for _, c := range doc.Clusters {
		if c.Name == context.text("cluster") {
			cluster = c.Cluster
		}
	}
	for _, u := range doc.Users {
		if u.Name == context.text("user") {
			user = u.User
		}
	}
	if cluster == nil {
		return nil, invalid(fmt.Errorf("context %s is for the cluster %q, which it does not have", name, context.text("cluster")))
	}
	if user == nil {
		return nil, invalid(fmt.Errorf("context %s is for the user %q, which it does not have", name, context.text("user")))
	}
	files := inliner{readFile}
	err = errors.Join(checkFields("clusters", cluster, clusterFields()), checkFields("users", user, userFields()), checkServer(cluster), checkPlugins(user, name, context.text("cluster")),
		files.inline(cluster, "clusters", "certificate-authority"),
		files.inline(user, "users", "client-certificate"), files.inline(user, "users", "client-key"), files.token(user))
	if err == nil {
		err = errors.Join(checkCluster(cluster), checkUser(user))
	}
	if err != nil {
		return nil, err
	}
	keep(cluster, clusterFields(), "certificate-authority")
	keep(user, userFields(), "client-certificate", "client-key", "tokenFile", "exec", "auth-provider")
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": cluster}},
		"users":    []any{map[string]any{"name": name, "user": user}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	})
}

// clusterFields are those of a cluster that are read, each with a value of its type.
func clusterFields() entry {
	return entry{"server": "", "tls-server-name": "", "insecure-skip-tls-verify": false, "certificate-authority": "", "certificate-authority-data": "",
		"proxy-url": "", "disable-compression": false}
}

// userFields are those of a user.
func userFields() entry {
	return entry{"client-certificate": "", "client-certificate-data": "", "client-key": "", "client-key-data": "", "token": "", "tokenFile": "",
		"username": "", "password": "", "as": "", "as-uid": "", "as-groups": []any{}, "as-user-extra": entry{}, "exec": entry{}, "auth-provider": entry{}}
}

// checkFields rejects a value of another type than kubectl takes, which the checks of what it means
// would pass over. It does not quote the value.
func checkFields(list string, e, fields entry) error {
	var errs []error
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		var ok bool
		var want string
		switch is := e[field]; fields[field].(type) {
		case string:
			_, ok = is.(string)
			want = "text: put it in quotes"
		case bool:
			_, ok = is.(bool)
			want = "true or false"
		case []any:
			_, ok = is.([]any)
			want = "a list"
		default:
			_, ok = is.(map[string]any)
			want = "a map"
		}
		if !ok && e[field] != nil {
			errs = append(errs, invalid(fmt.Errorf("%s: %s is not %s", list, field, want)))
		}
	}
	return errors.Join(errs...)
}

// keep removes all fields that are not read, and those of the names in but.
func keep(e, fields entry, but ...string) {
	maps.DeleteFunc(e, func(field string, _ any) bool {
		_, known := fields[field]
		return !known || slices.Contains(but, field)
	})
}

// context is the one with that name, or the current one.
func (d document) context(name string) (entry, string, error) {
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
		return nil, "", invalid(errors.New("it has no context"))
	case wanted == "":
		return nil, "", noContext(fmt.Errorf("it has no current context, but %s", strings.Join(names, ", ")))
	}
	return nil, "", noContext(fmt.Errorf("it has no context %s, but %s", wanted, strings.Join(names, ", ")))
}

// checkServer refuses an address that means another machine in a container.
func checkServer(cluster entry) error {
	server := cluster.text("server")
	if server != "" && !strings.Contains(server, "://") { // as kubectl completes it
		scheme := "http://"
		if insecure, _ := cluster["insecure-skip-tls-verify"].(bool); insecure || cluster.text("certificate-authority")+cluster.text("certificate-authority-data") != "" {
			scheme = "https://"
		}
		server = scheme + server
		cluster["server"] = server
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return invalid(errors.New("the cluster's server is not a URL with https:// and a host"))
	}
	var errs []error
	for _, field := range []string{"server", "proxy-url"} {
		u, err := url.Parse(cluster.text(field))
		if err != nil || !isLoopback(u.Hostname()) {
			continue
		}
		fix := "write an address of this machine that containers reach as " + field + " into a copy of the kubeconfig"
		if field == "server" {
			fix += ": https://192.0.2.1:6443; with tls-server-name: " + u.Hostname() + " if the server's certificate is not for that address"
		}
		errs = append(errs, &fault.Fault{
			Code: CodeLoopback, Class: fault.Usage, Op: "read the kubeconfig", Fix: fix,
			Err: bounded.LineError(fmt.Errorf("%s is %s, this machine: steps run in containers, where that is the container itself", field, u.Host)),
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

// checkPlugins refuses a user whose credentials come from a program. The remedy works in
// the context, which need not be the current one.
func checkPlugins(user entry, context, cluster string) error {
	var errs []error
	in := " --context=" + fault.Quote(context)
	for _, field := range []string{"exec", "auth-provider"} {
		plugin, ok := user[field].(map[string]any)
		if !ok {
			continue
		}
		program := cmp.Or(entry(plugin).text("command"), entry(plugin).text("name"))
		errs = append(errs, &fault.Fault{
			Code: CodePlugin, Class: fault.Usage, Op: "read the kubeconfig",
			Fix: "use the token of a service account: kubectl create serviceaccount slipway -n kube-system" + in + " && kubectl create clusterrolebinding slipway --clusterrole=cluster-admin --serviceaccount=kube-system:slipway" + in + "; " +
				`then kubectl config set-credentials slipway --token="$(kubectl create token slipway -n kube-system --duration=24h` + in + `)" && kubectl config set-context slipway --user=slipway --cluster=` + fault.Quote(cluster) +
				"; and set existing.context: slipway",
			Err: bounded.LineError(fmt.Errorf("its user gets credentials from a program (%s: %s), which steps in containers do not have", field, program)),
		})
	}
	return errors.Join(errs...)
}

// lineRE finds the line in the message of a YAML parser, which may quote the text.
var lineRE = regexp.MustCompile(`line \d+`)

func line(err error) string {
	if at := lineRE.FindString(err.Error()); at != "" {
		return " (" + at + ")"
	}
	return ""
}

func invalid(err error) error {
	return &fault.Fault{Code: CodeInvalid, Class: fault.Usage, Op: "read the kubeconfig", Err: bounded.LineError(err),
		Fix: "name one that works with kubectl: kubectl config view --raw --minify --flatten"}
}

func noContext(err error) error {
	return &fault.Fault{Code: CodeInvalid, Class: fault.Usage, Op: "read the kubeconfig", Err: bounded.LineError(err),
		Fix: "name one of these as context in the configuration"}
}
