package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
)

// document is what is read of a kubeconfig, and all that is written of it.
type document struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Clusters   []namedCluster `json:"clusters"`
	Contexts   []namedContext `json:"contexts"`
	Users      []namedUser    `json:"users"`
	Current    string         `json:"current-context"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type namedContext struct {
	Name    string  `json:"name"`
	Context context `json:"context"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type context struct {
	Cluster string `json:"cluster"`
	User    string `json:"user"`
}

type cluster struct {
	Server             string `json:"server,omitempty"`
	TLSServerName      string `json:"tls-server-name,omitempty"`
	Insecure           bool   `json:"insecure-skip-tls-verify,omitempty"`
	CA                 string `json:"certificate-authority,omitempty"`
	CAData             []byte `json:"certificate-authority-data,omitempty"`
	ProxyURL           string `json:"proxy-url,omitempty"`
	DisableCompression bool   `json:"disable-compression,omitempty"`
}

type user struct {
	Certificate     string              `json:"client-certificate,omitempty"`
	CertificateData []byte              `json:"client-certificate-data,omitempty"`
	Key             string              `json:"client-key,omitempty"`
	KeyData         []byte              `json:"client-key-data,omitempty"`
	Token           string              `json:"token,omitempty"`
	TokenFile       string              `json:"tokenFile,omitempty"`
	Username        string              `json:"username,omitempty"`
	Password        string              `json:"password,omitempty"`
	As              string              `json:"as,omitempty"`
	AsUID           string              `json:"as-uid,omitempty"`
	AsGroups        []string            `json:"as-groups,omitempty"`
	AsUserExtra     map[string][]string `json:"as-user-extra,omitempty"`
	Exec            *struct {
		Command string `json:"command"`
	} `json:"exec,omitempty"`
	AuthProvider *struct {
		Name string `json:"name"`
	} `json:"auth-provider,omitempty"`
}

// lineRE finds the line in the message of a YAML parser, which may quote the text.
var lineRE = regexp.MustCompile(`line \d+`)

// decode reads a kubeconfig. By way of JSON, a number is no text: kubectl rejects it, too.
func decode(text []byte) (d document, err error) {
	if path := strings.TrimSpace(string(text)); strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "\n{") {
		return d, errPath
	}
	plain, err := yaml.YAMLToJSON(text)
	if err != nil {
		at := lineRE.FindString(err.Error())
		return d, errors.New(strings.TrimSuffix("it is not YAML as kubectl writes it ("+at+")", " ()"))
	}
	if err = json.Unmarshal(plain, &d); err == nil {
		return d, d.checkNames()
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
func (d document) checkNames() error {
	lists := map[string][]string{}
	for _, c := range d.Clusters {
		lists["clusters"] = append(lists["clusters"], c.Name)
	}
	for _, c := range d.Contexts {
		lists["contexts"] = append(lists["contexts"], c.Name)
	}
	for _, u := range d.Users {
		lists["users"] = append(lists["users"], u.Name)
	}
	for list, names := range lists {
		seen := map[string]bool{}
		for _, name := range names {
			if name != bounded.Line(name) {
				return fmt.Errorf("it has %q in %s, which cannot be printed", name, list)
			}
			if seen[name] {
				return fmt.Errorf("it has %q twice in %s", name, list)
			}
			seen[name] = true
		}
	}
	return nil
}

// Secrets calls hide with each credential in what Extract returned, as it is written there
// and decoded.
func Secrets(text []byte, hide func(credential string)) {
	d, err := decode(text)
	if err != nil {
		hide(string(text))
		return
	}
	for _, u := range d.Users {
		for _, credential := range []string{u.User.Token, u.User.Password, base64.StdEncoding.EncodeToString(u.User.KeyData), string(u.User.KeyData)} {
			if credential != "" {
				hide(credential)
			}
		}
	}
}
