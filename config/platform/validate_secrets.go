package platform

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// The range of the length of a generated value.
const (
	minLength = 16
	maxLength = 128
)

// generates are the sources of values.
func generates() []string {
	return []string{string(Password), string(Token), string(Literal), string(CopyOf), string(Given)}
}

func (k SecretKey) random() bool { return k.Generate == Password || k.Generate == Token }

func (v *validator) secrets() {
	all := v.r.Secrets
	v.unique("secrets", "name", len(all), func(i int) string { return all[i].Namespace + "/" + all[i].Name })
	for i, s := range all {
		field := fmt.Sprintf("secrets[%d]", i)
		v.Match(field+".name", s.Name, nameRE, nameWant)
		v.namespace(field+".namespace", s.Namespace)
		v.labels(field+".labels", s.Labels)
		if len(s.Keys) == 0 {
			v.Add(field+".keys", "nothing", "at least one key")
		}
		seen := map[string]bool{}
		for j, k := range s.Keys {
			at := fmt.Sprintf("%s.keys[%d]", field, j)
			v.Match(at+".key", k.Key, keyRE, "letters, digits, dots, hyphens and underscores")
			if seen[k.Key] {
				v.Add(at+".key", document.Quote(k.Key)+" again", "each key once")
			}
			seen[k.Key] = true
			v.secretKey(at, k)
		}
	}
}

func (v *validator) secretKey(field string, k SecretKey) {
	if k.Value != "" && k.Generate != Literal {
		v.Add(field+".value", "a value", "none unless generate is literal")
	}
	if k.From != "" && k.Generate != CopyOf && k.Generate != Given {
		v.Add(field+".from", document.Quote(k.From), "none unless generate is copyOf or given")
	}
	if k.Give != "" && !k.random() {
		v.Add(field+".give", document.Quote(k.Give), "none unless generate is password or token")
	}
	if k.Give != "" {
		v.Match(field+".give", k.Give, giveRE, "letters, digits, dots and hyphens, starting with a letter")
		if slices.Contains(GivenNames(), k.Give) {
			v.Add(field+".give", document.Quote(k.Give)+", which is a field of the configuration", "another name")
		}
	}
	if k.Rotated != "" && !k.random() {
		v.Add(field+".rotated", document.Quote(k.Rotated), "none unless generate is password or token")
	} else if k.Rotated != "" {
		v.Match(field+".rotated", k.Rotated, versionRE, `a semantic version such as "1.0.0"`)
		if Older(v.r.Version, k.Rotated) {
			v.Add(field+".rotated", document.Quote(k.Rotated), "the version of this release, "+v.r.Version+", or of an earlier one")
		}
	}
	if k.Length != 0 && !k.random() {
		v.Add(field+".length", fmt.Sprint(k.Length), "none unless generate is password or token")
	}
	switch k.Generate {
	case Password, Token:
		if k.Length < minLength || k.Length > maxLength {
			v.Add(field+".length", fmt.Sprint(k.Length), fmt.Sprintf("%d to %d characters", minLength, maxLength))
		}
	case Literal:
		if k.Value == "" {
			v.Add(field+".value", "nothing", "the value")
		}
		v.holes(field+".value", k.Value, "domain", "deployment", "adminEmail")
	case CopyOf:
		v.copied(field+".from", k.From)
	case Given:
		if !slices.Contains(GivenNames(), k.From) {
			v.Add(field+".from", document.Shown(k.From), document.OneOf(GivenNames()...))
		}
	default:
		v.Add(field+".generate", document.Shown(string(k.Generate)),
			document.OneOf(generates()...))
	}
}

// copied checks that from names a generated key, not one that is copied itself.
func (v *validator) copied(field, from string) {
	for _, s := range v.r.Secrets {
		for _, k := range s.Keys {
			if from != s.Namespace+"/"+s.Name+"/"+k.Key {
				continue
			}
			if k.Generate == CopyOf {
				v.Add(field, document.Quote(from)+", which is a copy itself", "the key that it is copied from")
			}
			if k.Generate == Given {
				v.Add(field, document.Quote(from)+", which is given", "generate: given and from: "+k.From)
			}
			return
		}
	}
	v.Add(field, document.Shown(from), "namespace/secret/key of a secret in this file")
}

func (v *validator) configMaps() {
	all := v.r.ConfigMaps
	v.unique("configMaps", "name", len(all), func(i int) string { return all[i].Namespace + "/" + all[i].Name })
	for i, m := range all {
		field := fmt.Sprintf("configMaps[%d]", i)
		v.Match(field+".name", m.Name, nameRE, nameWant)
		v.namespace(field+".namespace", m.Namespace)
		if len(m.Data) == 0 {
			v.Add(field+".data", "nothing", "at least one key")
		}
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			v.Match(field+".data."+key, key, keyRE, "a key of letters, digits, dots, hyphens and underscores")
			v.filled(field+".data."+key, m.Data[key])
		}
	}
}

func (v *validator) certificates() {
	all := v.r.Certificates
	v.unique("certificates", "secret", len(all), func(i int) string { return all[i].Secret })
	for i, c := range all {
		field := fmt.Sprintf("certificates[%d]", i)
		v.reference(field+".secret", c.Secret)
		if len(c.Hosts) == 0 {
			v.Add(field+".hosts", "nothing", "at least one host")
		}
		for j, h := range c.Hosts {
			v.host(fmt.Sprintf("%s.hosts[%d]", field, j), strings.TrimPrefix(h, "*."))
		}
	}
}

// requirements checks what somebody else puts into the cluster.
func (v *validator) requirements() {
	for i, r := range v.r.Requires {
		field := fmt.Sprintf("requires[%d]", i)
		name, kind := r.Secret, "secret"
		if name == "" {
			name, kind = r.ConfigMap, "configMap"
		}
		switch {
		case r.Secret != "" && r.ConfigMap != "":
			v.Add(field, "secret and configMap", "one of them")
		case name == "":
			v.Add(field, "neither secret nor configMap", "one of them, as namespace/name")
		default:
			v.reference(field+"."+kind, name)
		}
		for _, s := range v.r.Secrets {
			if r.Secret == s.Namespace+"/"+s.Name {
				v.Add(field+".secret", document.Quote(name)+", which this release generates", "a secret that is made elsewhere")
			}
		}
		for j, key := range r.Keys {
			v.Match(fmt.Sprintf("%s.keys[%d]", field, j), key, keyRE, "letters, digits, dots, hyphens and underscores")
		}
	}
}

// reference checks "namespace/name" of an object in one of the platform's namespaces.
func (v *validator) reference(field, value string) {
	namespace, _, ok := parseName(value)
	if !ok {
		v.Add(field, document.Shown(value), "namespace/name")
		return
	}
	v.namespace(field, namespace)
}

// host checks the host of a certificate or an address, in which {domain} may stand.
func (v *validator) host(field, value string) {
	v.holes(field, value, FillDomain)
	if host := Fill(value, map[string]string{FillDomain: "example.com"}); !hostRE.MatchString(host) {
		v.Add(field, document.Shown(value), "a host such as gitea.{domain}")
	}
}
