package kubeconfig_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

// FuzzExtract: what is taken out of a kubeconfig names no file and no program, asks for no file that
// the kubeconfig does not name, and reads back as itself.
func FuzzExtract(f *testing.F) {
	f.Add([]byte(several), "")
	f.Add([]byte(several), "plain")
	head := "current-context: c\nclusters: [{name: c, cluster: {server: 'https://x'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	for _, user := range []string{
		"{exec: {command: sh, args: [-c, id]}}", "{exec: [sh]}", "{exec: sh}", "{Exec: {command: sh}}", "{auth-provider: {name: oidc}}",
		"{tokenFile: ../../etc/shadow}", "{tokenFile: [x]}", "{client-key: /dev/zero, client-key-data: 7}", "{token: 0x10}", "null", "[]", "{as: \"a\\nb\"}",
	} {
		f.Add([]byte(head+"users: [{name: u, user: "+user+"}]"), "")
	}
	f.Add([]byte(strings.Replace(head, "https://x", "https://127.1", 1)), "c")
	f.Add([]byte(strings.Replace(head, "https://x", "https://[::ffff:127.0.0.1%25x]:1", 1)), "c")
	f.Add([]byte("a: &a [*a]"), "x\x1b[31m\n")
	f.Add([]byte("{"), "")
	f.Fuzz(func(t *testing.T, text []byte, context string) {
		faulttest.Bounded(t, func() {
			var named []string
			out, err := kubeconfig.Extract(text, context, func(path string) ([]byte, error) {
				named = append(named, path)
				if len(path)%5 == 0 {
					return nil, errors.New("it is not there")
				}
				return []byte("content"), nil
			})
			if err != nil {
				faulttest.Coded(t, err, fault.Usage)
				return
			}
			var all struct {
				Users []struct{ User map[string]any }
				C     []struct{ Cluster map[string]any } `json:"clusters"`
			}
			require.NoError(t, yaml.Unmarshal(out, &all))
			require.Len(t, all.C, 1)
			require.Len(t, all.Users, 1)
			for field := range all.Users[0].User {
				for _, bad := range []string{"exec", "auth-provider", "tokenFile", "client-key", "client-certificate"} {
					require.False(t, strings.EqualFold(field, bad), "%s in\n%s", field, out)
				}
			}
			for field := range all.C[0].Cluster {
				require.False(t, strings.EqualFold(field, "certificate-authority"), "%s in\n%s", field, out)
			}
			require.LessOrEqual(t, len(named), 4)
			again, err := kubeconfig.Extract(out, "", nil)
			require.NoError(t, err, "%s", out)
			require.Equal(t, string(out), string(again))
		})
	})
}
