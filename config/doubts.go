package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Doubts lists what is valid and may not be meant so, in the order of its lines.
//
// What looks like a secret where none belongs: values of components, settings of the release,
// and what hooks run and get in their environment. All of it is in records of runs, and more;
// see docs/configuration.md. What the values are is not told.
func (c *Config) Doubts() []Problem {
	var out document.List
	for _, name := range slices.Sorted(maps.Keys(c.Platform.Components)) {
		EachText(c.Platform.Components[name].Values, "platform.components."+name+".values", func(path, key, value string) {
			inClear(&out, path, key, value, "let the component take it from a Secret; platform.secrets is for your own")
		})
	}
	EachText(c.Platform.Settings, "platform.settings", func(path, key, value string) {
		inClear(&out, path, key, value, "platform.secrets is for secrets")
	})
	for i, h := range c.Hooks {
		at := fmt.Sprintf("hooks[%d]", i)
		for _, name := range slices.Sorted(maps.Keys(h.Env)) {
			inClear(&out, at+".env."+name, name, h.Env[name], at+".secrets is for secrets")
		}
		inClear(&out, at+".script", "", h.Script, "put it into "+at+".secrets, and its variable here")
		for n, arg := range h.Run {
			inClear(&out, fmt.Sprintf("%s.run[%d]", at, n), "", arg, "put it into "+at+".secrets, and its variable in a script")
		}
	}
	if c.doc == nil {
		return out
	}
	return c.doc.Merge(out...)
}

// object is what the name of a Secret looks like, and a password seldom does: web-keys.
var object = regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)

// inClear adds a value to l if it looks like a secret.
func inClear(l *document.List, path, key, value, instead string) {
	_, notTime := time.ParseDuration(value)
	switch {
	case value == "***", value == "true", value == "false", notTime == nil, SecretRef(value).Valid():
	case strings.HasSuffix(key, "Secret") && key != "clientSecret" && object.MatchString(value):
	case redact.LooksSecret(key, value):
		l.Add(path, "what looks like a secret, and is in clear: "+instead, "")
	}
}

// EachText calls do with the path, the key and the value of every text in raw, and of every
// number whose key names a password. The key of a value beside a name, as in the environment
// of a container, is that name.
func EachText(raw json.RawMessage, path string, do func(path, key, value string)) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return // there is none
	}
	var walk func(path, key string, value any)
	walk = func(path, key string, value any) {
		switch v := value.(type) {
		case string:
			do(path, key, v)
		case json.Number:
			if lower := strings.ToLower(key); strings.HasSuffix(lower, "password") || strings.HasSuffix(lower, "passphrase") {
				do(path, key, v.String())
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), key, item)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				named := k
				if name, ok := v["name"].(string); ok && k == "value" {
					named = name
				}
				walk(path+"."+k, named, v[k])
			}
		}
	}
	walk(path, "", value)
}
