package render

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAChartReachesNothing: whatever a chart has, reading and rendering it asks no address and
// reads no file outside. The cluster that KUBECONFIG names is such an address.
func TestAChartReachesNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var asked atomic.Int32
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = connection.Close()
		}
	}()
	address := listener.Addr().String()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":"http://%s"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, address)), 0o600))
	for name, value := range map[string]string{"KUBECONFIG": kubeconfig, "HELM_KUBEAPISERVER": "http://" + address, "HELM_DEBUG": "true", "MARK": "c4nary"} {
		t.Setenv(name, value)
	}
	const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: %s}}"
	for name, c := range map[string]struct {
		files map[string]string // beside those of a chart; over them
		wants string            // what a is; empty: the chart cannot be rendered
		err   string
	}{
		"an object of the cluster":   {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ lookup "v1" "Secret" "kube-system" "" | toJson }}'`)}, "{}", ""},
		"an address of a name":       {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ getHostByName "localhost" }}'`)}, "", ""},
		"that, in a text":            {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ tpl .Values.text . }}'`), "values.yaml": `text: '{{ getHostByName "localhost" }}'`}, "", ""},
		"a variable":                 {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ env "MARK" }}'`)}, "", `function "env" not defined`},
		"variables in a text":        {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ tpl .Values.text . }}'`), "values.yaml": `text: '{{ expandenv "$MARK" }}'`}, "", `function "expandenv" not defined`},
		"a file outside":             {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ .Files.Get "../outside" }}{{ .Files.Get "/etc/hostname" }}'`)}, "", ""},
		"files outside":              {map[string]string{"templates/a.yaml": fmt.Sprintf(object, `'{{ len (.Files.Glob "../**") }}{{ len (.Files.Glob "/etc/*") }}'`)}, "00", ""},
		"a chart of a repository":    {map[string]string{"Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0, dependencies: [{name: db, version: 1.0.0, repository: 'http://ADDRESS'}]}"}, "", "missing in charts/ directory: db"},
		"a chart of a registry":      {map[string]string{"Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0, dependencies: [{name: db, version: 1.0.0, repository: 'oci://ADDRESS/db'}]}"}, "", "missing in charts/ directory: db"},
		"a chart of a folder":        {map[string]string{"Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0, dependencies: [{name: outside, version: 1.0.0, repository: 'file://../outside'}]}"}, "", "missing in charts/ directory: outside"},
		"a chart of an earlier kind": {map[string]string{"Chart.yaml": "{apiVersion: v1, name: web, version: 1.0.0}", "requirements.yaml": "dependencies: [{name: db, version: 1.0.0, repository: 'http://ADDRESS'}]"}, "", "missing in charts/ directory: db"},
		"a plugin":                   {map[string]string{"plugin.yaml": "{name: p, command: 'touch MARK'}", "templates/a.yaml": fmt.Sprintf(object, "'x'")}, "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := aChart(t)
			outside := filepath.Join(filepath.Dir(dir), "outside")
			require.NoError(t, os.MkdirAll(outside, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(outside, "Chart.yaml"), []byte("{apiVersion: v2, name: outside, version: 1.0.0}"), 0o600))
			for file, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), []byte(strings.ReplaceAll(text, "ADDRESS", address)), 0o600))
			}
			ch, err := LoadChart(t.Context(), os.DirFS(dir), ".")
			require.NoError(t, err)
			err = Missing(ch)
			if err == nil {
				rel, failed := Chart(t.Context(), ch, options())
				if err = failed; err == nil {
					require.Contains(t, rel.Manifest, fmt.Sprintf("data: {a: '%s'}", c.wants))
				}
			}
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.Zero(t, asked.Load())
		})
	}
	connection, err := net.Dial("tcp", address)
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	require.Eventually(t, func() bool { return asked.Load() == 1 }, time.Second, time.Millisecond, "the listener counts")
}
