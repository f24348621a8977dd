package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Requirement is an object that somebody else puts into the cluster. Exactly one of
// Secret and ConfigMap is set.
type Requirement struct {
	Secret    string   `json:"secret,omitempty" is:"reference"`    // Secret, "namespace/name"
	ConfigMap string   `json:"configMap,omitempty" is:"reference"` // ConfigMap, "namespace/name"
	Keys      []string `json:"keys,omitempty" is:"key"`            // required keys
}

// Namespace is a Kubernetes namespace of the platform.
type Namespace struct {
	Name   string            `json:"name" is:"ownNamespace"`                       // name of the namespace
	Labels map[string]string `json:"labels,omitempty" key:"label" is:"labelValue"` // labels, such as pod-security.kubernetes.io/enforce
}

// Secret is a Kubernetes Secret whose values are made by the first run that has them and
// kept from then on, except for those that the user's configuration gives, which follow it.
type Secret struct {
	Name      string            `json:"name" is:"name"`                               // name of the Secret
	Namespace string            `json:"namespace" is:"namespace"`                     // its namespace: one of namespaces, default or kube-system
	Type      string            `json:"type,omitempty"`                               // type of the Secret; default "Opaque"
	Labels    map[string]string `json:"labels,omitempty" key:"label" is:"labelValue"` // labels of the Secret
	Keys      []SecretKey       `json:"keys" least:"at least one key"`                // keys of the Secret
}

// SecretsGiven are the Secrets of the release without the keys that the configuration, which
// gives these secrets, does not give. A Secret may have no key then.
func (r *Release) SecretsGiven(names []string) []Secret {
	out := slices.Clone(r.Secrets)
	for i := range out {
		out[i].Keys = slices.DeleteFunc(slices.Clone(out[i].Keys), func(k SecretKey) bool {
			return k.Generate == Given && !slices.Contains(names, k.From)
		})
	}
	return out
}

// Generate determines where the value of a secret's key comes from.
type Generate string

// The sources of values.
const (
	Password Generate = "password" // random letters and digits
	Token    Generate = "token"    // random lower-case hexadecimal digits
	Literal  Generate = "literal"  // a fixed value that replaces the Secret's, such as a user name or an address; never a secret
	CopyOf   Generate = "copyOf"   // value of the key in from
	Given    Generate = "given"    // secret of the configuration, which from names; no key if there is none
)

// DefaultLength is the default length of a password or token.
const DefaultLength = 32

// SecretKey is one key of a Secret.
type SecretKey struct {
	Key      string   `json:"key" is:"key"`     // name of the key
	Generate Generate `json:"generate"`         // source of the value
	Length   int      `json:"length,omitempty"` // length of a password or token, 16 to 128; 32 when left out
	Value    string   `json:"value,omitempty"`  // value of a literal, with {domain}, {deployment} and {adminEmail}
	From     string   `json:"from,omitempty"`   // source of a copy, "namespace/secret/key" of this file, or the configuration's field with the value
	// Name in platform.secrets under which the user may give a password or token instead
	// of a generated one.
	Give string `json:"give,omitempty"`
	// Release that rotated the value: in an older Secret, Slipway regenerates the password
	// or token once, with its copies. A value from the user stays.
	Rotated string `json:"rotated,omitempty"`
}

// GivenNames returns the fields of the configuration whose secrets a platform can have
// copied into its own Secrets.
func GivenNames() []string { return []string{"smtp.password", "observability.password"} }

// Gives returns the names under which the user may give secrets, sorted.
func (r *Release) Gives() []string {
	var out []string
	for _, s := range r.Secrets {
		for _, k := range s.Keys {
			if k.Give != "" && !slices.Contains(out, k.Give) {
				out = append(out, k.Give)
			}
		}
	}
	slices.Sort(out)
	return out
}

// CheckGiven finds secrets of the configuration that the release does not take.
func (r *Release) CheckGiven(names []string) error {
	takes := r.Gives()
	unknown := slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool { return slices.Contains(takes, name) })
	if len(unknown) == 0 {
		return nil
	}
	return unfit("take the secrets of platform.secrets", fmt.Errorf("platform %s %s takes no secret %s", r.Name, r.Version, strings.Join(unknown, ", ")),
		"correct platform.secrets in the configuration (it takes: "+cmp.Or(strings.Join(takes, ", "), "none")+")")
}

// ConfigMap is a ConfigMap that is made from the configuration. Pods that use it are
// started again when it changes.
type ConfigMap struct {
	Name      string            `json:"name" is:"name"`                          // name of the ConfigMap
	Namespace string            `json:"namespace" is:"namespace"`                // its namespace: one of namespaces, default or kube-system
	Data      map[string]string `json:"data" key:"key" least:"at least one key"` // texts by key, with names in braces
}

// Certificate is a Secret of type kubernetes.io/tls, with the keys tls.crt, tls.key and
// ca.crt, for hosts of the platform. It comes from the deployment's own CA, unless the
// user brings a certificate: then it is that one.
type Certificate struct {
	Secret string   `json:"secret" is:"reference"`                                // Secret for the certificate, "namespace/name"
	Hosts  []string `json:"hosts" is:"certificateHost" least:"at least one host"` // hosts of the certificate, with {domain}, also with a leading "*."
}

// AuthorityConfigMap is the ConfigMap in each namespace of a release with Certificates
// that holds what clients must trust, PEM, under AuthorityKey.
const (
	AuthorityConfigMap = "slipway-ca"
	AuthorityKey       = "ca.crt"
)
