package lock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

// FuzzRead: a lock file is read as it is written, or rejected.
func FuzzRead(f *testing.F) {
	f.Add(embedded)
	for _, text := range []string{
		"version: 1\nsuite: trixie\n",
		`{"version":1,"suite":"s","tools":[{"name":"a","version":"1","modules":[{"path":"x/y","version":"v1.0.0","sum":"h1:AAAA"}],"release":{"linux/amd64":{"url":"https://x/..","sha256":"00","sources":["a","b"]}}}]}`,
		`{"version":1,"suite":"s","images":[{"name":"a","version":"1","source":"s","registry":{"linux/amd64":{"ref":"r/../x:1","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","pushed":"sha256:00"}},"standsFor":["a","a"]}]}`,
		"version: 1\nsuite: &a [*a]\n", "version: 1e400", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "[", "", "\x00",
		`{"version":1,"suite":"s","manifests":[{"name":"m","version":"1","modules":[],"files":{"../../x.yaml":"zz"}}],"lines":{"linux/amd64":"sha256:x"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "slipway.lock.json")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		faulttest.Bounded(t, func() {
			l, data, err := Read(file)
			if err != nil {
				require.ErrorIs(t, err, &fault.Fault{Code: CodeFile})
				faulttest.Coded(t, err, fault.Usage)
				return
			}
			require.Equal(t, text, data)
			written, err := l.Marshal()
			require.NoError(t, err)
			again, err := Parse(written)
			require.NoError(t, err, "%s", written)
			twice, err := again.Marshal()
			require.NoError(t, err)
			require.Equal(t, string(written), string(twice))
		})
	})
}
