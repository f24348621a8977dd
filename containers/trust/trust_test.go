package trust

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// bundled is a bundle whose only file is of that size.
func bundled(t *testing.T, size int64) *bundle.Bundle {
	t.Helper()
	text, err := bundle.Index{Version: bundle.Format, Platform: "linux/amd64", Files: []bundle.File{
		{Path: "bin/slipway", Name: "slipway", Kind: bundle.Tool, SHA256: strings.Repeat("a", 64), Size: size},
	}}.Marshal()
	require.NoError(t, err)
	b, err := bundle.Parse(text)
	require.NoError(t, err)
	return b
}

func TestADigestVouches(t *testing.T) {
	b, forged := bundled(t, 1), bundled(t, 2)
	digest, err := b.Digest()
	require.NoError(t, err)
	require.Equal(t, digest, b.ReadDigest())
	a := Anchor{Digest: digest, Name: "--bundle-digest"}
	v, err := a.Check(t.Context(), b, nil)
	require.NoError(t, err)
	require.Equal(t, Vouched{Digest: digest, By: "as --bundle-digest says"}, v)
	require.Empty(t, v.Warning())

	_, err = a.Check(t.Context(), forged, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeBundle})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "it is "+forged.ReadDigest()+", and --bundle-digest says "+digest)
	_, err = Anchor{}.Check(t.Context(), b, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeBundle})
	require.ErrorContains(t, err, "nothing says")

	v, err = Anchor{Digest: Unverified}.Check(t.Context(), forged, nil)
	require.NoError(t, err)
	require.True(t, v.Unverified)
	require.Contains(t, v.Warning(), forged.ReadDigest()+" is unverified")
}

// What the user adds to a bundle is wanted; what somebody else changes in it is not.
func TestWhatTheUserHasAddedIsVouchedFor(t *testing.T) {
	b, added, forged := bundled(t, 1), bundled(t, 2), bundled(t, 3)
	a := Anchor{Digest: b.ReadDigest(), Name: "x", Additions: bundle.Additions(t.TempDir())}
	_, err := a.Check(t.Context(), added, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeBundle})
	require.NoError(t, a.Additions.Keep(b.ReadDigest(), added.ReadDigest()))
	v, err := a.Check(t.Context(), added, nil)
	require.NoError(t, err)
	require.Equal(t, "as x says, with what you have added to it", v.By)
	_, err = a.Check(t.Context(), forged, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeBundle})
}
