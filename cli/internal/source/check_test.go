package source

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// forged passes for lines of Slipway's own, and does something to a terminal.
const forged = "a\nvalid: b\r\n  remedy: \x1b[31mc\u2028d"

// TestWhatAReleaseSaysIsOneLine, wherever it is from.
func TestWhatAReleaseSaysIsOneLine(t *testing.T) {
	r, err := platform.Load(fstest.MapFS{platform.File: {Data: []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: a}]\ncomponents: [{name: a, kind: manifests, bundle: a, namespace: a}]\n")}})
	require.NoError(t, err)
	bad := contract.Unread{Component: forged, File: forged, Err: errors.New(forged)}
	for name, text := range map[string]string{
		"problem": unreadOf(r, bad).Error(),
		"image":   named(r, contract.ImageUse{Component: forged, File: forged, Image: forged}).Error(),
	} {
		requireOneLine(t, text, name)
	}
	var out bytes.Buffer
	require.NoError(t, findings(&out, r, filesUnknown, contract.Contents{Unread: []contract.Unread{{Component: forged, Err: errors.New(forged)}}}))
	requireOneLine(t, strings.TrimSuffix(out.String(), "\n"), "unread")
}

func requireOneLine(t *testing.T, text, name string) {
	t.Helper()
	require.NotContains(t, text, "\n", name)
	require.NotContains(t, text, "\r", name)
	require.NotContains(t, text, "\x1b", name)
	require.NotContains(t, text, "\u2028", name)
}
