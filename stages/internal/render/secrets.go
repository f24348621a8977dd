package render

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// HideSecrets calls hide with each value of the Secrets that the pods of objects read, but for
// what a log may name.
func HideSecrets(ctx context.Context, c *kube.Client, objs []*unstructured.Unstructured, hide func(string)) error {
	for _, o := range objs {
		for _, use := range Uses(o) {
			name, is := strings.CutPrefix(use, "Secret/")
			if !is {
				continue
			}
			secret, err := c.Secret(ctx, o.GetNamespace(), name)
			if err != nil {
				return err
			}
			if secret == nil {
				continue
			}
			for key, value := range secret.Data {
				if !harmless(key) {
					hide(string(value))
				}
			}
		}
	}
	return nil
}

// harmless reports whether a key of a Secret says who or where somebody is.
func harmless(key string) bool {
	key = strings.ToLower(key)
	return !strings.Contains(key, "pass") && slices.ContainsFunc([]string{"user", "email", "name", "database", "db", "host", "port"}, func(end string) bool { return strings.HasSuffix(key, end) })
}
