package packing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// hidden replaces a secret.
const hidden = "***"

// cleaner removes known secrets, and what looks like one, from a package.
type cleaner struct {
	known redact.Secrets
	// inline are values of the configuration that look like secrets. One may be a common word, so the release may
	// contain it.
	inline redact.Secrets
}

func (c *cleaner) text(s string) string { return redact.Text(c.inline.Redact(c.known.Redact(s))) }

func (c *cleaner) value(path, s string) string {
	if clean := c.text(s); clean != s || s == "" || !c.secret(path, s) {
		return clean
	}
	return hidden
}

// file cleans a file of a run. Binary files stay: see gate.
func (c *cleaner) file(name string, data []byte) ([]byte, error) {
	switch {
	case strings.HasSuffix(name, ".json"):
		return c.json(data)
	case strings.HasSuffix(name, ".yaml"):
		return c.yaml(data)
	case !utf8.Valid(data):
		return data, nil
	}
	return []byte(c.text(string(data))), nil
}

// json cleans the strings in JSON. Invalid JSON, such as an incomplete file, is cleaned as text.
func (c *cleaner) json(data []byte) ([]byte, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return []byte(c.text(string(data))), nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return []byte(c.text(string(data))), nil
	}
	changed := false
	v = c.strings(v, "", &changed)
	if !changed {
		return data, nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}

// strings cleans the strings and field names of a JSON value, and numbers that are secrets.
func (c *cleaner) strings(v any, field string, changed *bool) any {
	switch v := v.(type) {
	case string:
		clean := c.value(field, v)
		*changed = *changed || clean != v
		return clean
	case json.Number:
		if c.inline.Redact(v.String()) == hidden {
			*changed = true
			return hidden
		}
	case []any:
		for i := range v {
			v[i] = c.strings(v[i], field, changed)
		}
	case map[string]any:
		for k, value := range v {
			value = c.strings(value, k, changed)
			delete(v, k)
			clean := c.known.Redact(k)
			*changed = *changed || clean != k
			v[clean] = value
		}
	}
	return v
}

// yaml cleans the strings in all documents. Invalid YAML is cleaned as text.
func (c *cleaner) yaml(data []byte) ([]byte, error) {
	var out [][]byte
	changed := false
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return []byte(c.text(string(data))), nil
		}
		each(&n, "", func(path string, s *yaml.Node) {
			if clean := c.value(path, s.Value); clean != s.Value {
				s.SetString(clean)
				changed = true
			}
		})
		text, err := document.Encode(&n)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	if !changed {
		return data, nil
	}
	return bytes.Join(out, []byte("---\n")), nil
}

func each(n *yaml.Node, path string, do func(string, *yaml.Node)) {
	switch n.Kind {
	case yaml.ScalarNode:
		do(path, n)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			each(n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."), do)
		}
	default:
		for i, c := range n.Content {
			at := path
			if n.Kind == yaml.SequenceNode {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			each(c, at, do)
		}
	}
}

// config cleans a configuration, learns the hidden values, and returns their settings. References stay.
func (c *cleaner) config(data []byte) ([]byte, []string, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return nil, nil, fmt.Errorf("read the configuration of the run: %w", err)
	}
	var settings []string
	each(&n, "", func(path string, s *yaml.Node) {
		if s.Value == "" || s.ShortTag() != "!!str" && s.ShortTag() != "!!int" || !c.secret(path, s.Value) {
			return
		}
		c.inline.Add(s.Value)
		s.SetString(hidden)
		settings = append(settings, path)
	})
	slices.Sort(settings)
	if settings == nil {
		return data, nil, nil
	}
	out, err := document.Encode(&n)
	return out, settings, err
}

// secret reports whether a value is a secret or looks like one. A reference is none.
func (c *cleaner) secret(path, value string) bool {
	if c.known.In([]byte(value)) {
		return true
	}
	return !config.SecretRef(value).Valid() && redact.LooksSecret(path, value)
}

// gate masks known secrets in files. It returns the names of files that contain a secret and must
// not change.
func (c *cleaner) gate(files runpackage.Files) (held []string) {
	for name, f := range files {
		switch {
		case !c.known.In(f.Data):
		case strings.HasPrefix(strings.TrimPrefix(name, runpackage.BeforeDir+"/"), runpackage.ReleaseDir+"/") || !utf8.Valid(f.Data):
			held = append(held, name)
		default:
			f.Data = []byte(c.known.Redact(string(f.Data)))
			files[name] = f
		}
	}
	slices.Sort(held)
	return held
}

// learn makes a secret known; of a kubeconfig only its credentials, because other files have its lines, too.
func (c *cleaner) learn(secret string) {
	var doc yaml.Node
	var kubeconfig struct {
		Clusters []any `yaml:"clusters"`
		Users    []any `yaml:"users"`
	}
	if yaml.Unmarshal([]byte(secret), &kubeconfig) != nil || len(kubeconfig.Clusters)+len(kubeconfig.Users) == 0 || yaml.Unmarshal([]byte(secret), &doc) != nil {
		c.known.Add(secret)
		return
	}
	each(&doc, "", func(path string, s *yaml.Node) {
		switch path[strings.LastIndex(path, ".")+1:] {
		case "client-key-data", "token", "password", "id-token", "refresh-token", "client-secret", "access-token":
			c.known.Add(s.Value)
			c.known.Add(decodeBase64(s.Value))
		}
	})
}

// decodeBase64 decodes base64; empty if it is none.
func decodeBase64(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(b)
}
