package containers

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// TestTheMirrorIsAskedAsTheNodeWill before anything starts.
func TestTheMirrorIsAskedAsTheNodeWill(t *testing.T) {
	var said strings.Builder
	code := 3
	client := engine(t, func(fields []string) (any, string) {
		switch fields[len(fields)-1] {
		case "exitCode":
			return code, ""
		case "stderr":
			return said.String(), ""
		}
		return "id", ""
	})
	images := &Images{
		Toolchain: client.Container(), Mirror: "https://registry.example.com/team", Refs: map[string]string{"pause": "slipway.local/pause@sha256:00"},
		PullSecret: client.SetSecret("account", "x"),
	}
	for why, fix := range map[fault.Code]string{
		imageref.CodeLogin: "dagger call needs the file, before the function: --registry-auth file:", imageref.CodeUnreachable: "local: {registryMirror: ", imageref.CodeCertificate: "as it was told",
	} {
		said.Reset()
		WriteFault(&said, &fault.Fault{Code: why, Class: fault.Preflight, Op: "pull", Fix: "as it was told", Err: errors.New("the registry's words")})
		err := images.probeAsNode(t.Context())
		require.ErrorIs(t, err, &fault.Fault{Code: why})
		require.Equal(t, fault.Preflight, fault.ClassOf(err))
		require.ErrorContains(t, err, "the registry's words")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, fix)
	}
	said.Reset()
	said.WriteString("unknown command")
	require.ErrorContains(t, images.probeAsNode(t.Context()), "exit status 3: unknown command")
	code = 0
	require.NoError(t, images.probeAsNode(t.Context()))
}
