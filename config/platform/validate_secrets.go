package platform

import (
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/config/document"
)

// The range of the length of a generated value.
const (
	minLength = 16
	maxLength = 128
)

func (k SecretKey) random() bool { return k.Generate == Password || k.Generate == Token }

func (v *validator) secrets() {
	all := v.r.Secrets
	v.unique("secrets", "name", len(all), func(i int) string { return all[i].Namespace + "/" + all[i].Name })
	for i, s := range all {
		seen := map[string]bool{}
		for j, k := range s.Keys {
			at := fmt.Sprintf("secrets[%d].keys[%d]", i, j)
			if seen[k.Key] {
				v.Add(at+".key", document.Quote(k.Key)+" again", "each key once")
			}
			seen[k.Key] = true
			v.secretKey(at, k)
		}
	}
}

func (v *validator) secretKey(field string, k SecretKey) {
	for _, no := range []struct {
		name, got, unless string
		is                bool
	}{
		{"value", "a value", "literal", k.Value != "" && k.Generate != Literal},
		{"from", document.Quote(k.From), "copyOf or given", k.From != "" && k.Generate != CopyOf && k.Generate != Given},
		{"give", document.Quote(k.Give), "password or token", k.Give != "" && !k.random()},
		{"rotated", document.Quote(k.Rotated), "password or token", k.Rotated != "" && !k.random()},
		{"length", fmt.Sprint(k.Length), "password or token", k.Length != 0 && !k.random()},
	} {
		if no.is {
			v.Add(field+"."+no.name, no.got, "none unless generate is "+no.unless)
		}
	}
	if k.Give != "" {
		v.Match(field+".give", k.Give, giveRE, "letters, digits, dots and hyphens, starting with a letter")
		if slices.Contains(GivenNames(), k.Give) {
			v.Add(field+".give", document.Quote(k.Give)+", which is a field of the configuration", "another name")
		}
	}
	if k.Rotated != "" {
		v.Match(field+".rotated", k.Rotated, versionRE, versionWant)
		if Older(v.r.Version, k.Rotated) {
			v.Add(field+".rotated", document.Quote(k.Rotated), "the version of this release, "+v.r.Version+", or of an earlier one")
		}
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
	}
}

// copied checks that from names a generated key, not a copy.
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

// requirements checks what somebody else puts into the cluster.
func (v *validator) requirements() {
	for i, r := range v.r.Requires {
		field := fmt.Sprintf("requires[%d]", i)
		switch {
		case r.Secret != "" && r.ConfigMap != "":
			v.Add(field, "secret and configMap", "one of them")
		case r.Secret+r.ConfigMap == "":
			v.Add(field, "neither secret nor configMap", "one of them, as namespace/name")
		}
		for _, s := range v.r.Secrets {
			if r.Secret == s.Namespace+"/"+s.Name {
				v.Add(field+".secret", document.Quote(r.Secret)+", which this release generates", "a secret that is made elsewhere")
			}
		}
	}
}
