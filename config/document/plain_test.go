package document_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/document"
)

func TestCheckPlain(t *testing.T) {
	for _, text := range []string{"", "a: b\n", `{"a": ["&x", "*x"]}`, "a: |\n  &x *x\n"} {
		require.NoError(t, document.CheckPlain([]byte(text)), text)
	}
	for text, says := range map[string]string{
		"a: &x b\n":                           "line 1: an anchor or alias",
		"a: 1\nl:\n- &x b\n- *x\n":            "line 3: an anchor or alias",
		"? &x a\n: b\n":                       "an anchor or alias",
		"a: {<<: &x {b: c}}\n":                "an anchor or alias",
		"\t":                                  "yaml",
		"a: " + strings.Repeat("b", 4<<20):    "it has 4194307 bytes; at most 4194304 are read",
		"a: &x [" + strings.Repeat("[", 9999): "yaml",
	} {
		require.ErrorContains(t, document.CheckPlain([]byte(text)), says)
	}
}
