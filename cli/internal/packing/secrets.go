package packing

import (
	"encoding/base64"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// inKubeconfig are the keys of a kubeconfig whose values are secret.
var inKubeconfig = []string{"client-key-data", "token", "password", "id-token", "refresh-token", "client-secret", "access-token"}

// learn makes a secret known. Of a kubeconfig only a few values are secret; its lines are also
// those of other files.
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
		if slices.Contains(inKubeconfig, path[strings.LastIndex(path, ".")+1:]) {
			c.known.Add(s.Value)
			c.known.Add(decoded(s.Value))
		}
	})
}

// decoded is what is in base64; empty if it is not.
func decoded(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(b)
}
