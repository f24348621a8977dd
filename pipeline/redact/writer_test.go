package redact_test

import (
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// TestALineThatMayBeginASecretWaits, and no other does: what runs is seen while it runs.
func TestALineThatMayBeginASecretWaits(t *testing.T) {
	const secret = "Qx9LmZt7fk2WvB4nRp8sHd6gJc3y"
	code := base64.StdEncoding.EncodeToString([]byte("user:" + secret + ":more"))
	for name, c := range map[string]struct{ writes, want []string }{
		"a line":                 {[]string{"a line\n"}, []string{"a line\n"}},
		"no line":                {[]string{"a li", "ne\n"}, []string{"", "a line\n"}},
		"whole":                  {[]string{"is " + secret + "\n"}, []string{"is ***\n"}},
		"wrapped":                {[]string{"1\nis " + secret[:8] + "\n", secret[8:20] + "\n", secret[20:] + " end\n"}, []string{"1\n", "1\n", "1\nis *** end\n"}},
		"something else follows": {[]string{"is " + secret[:8] + "\n", "else\n"}, []string{"", "is " + secret[:8] + "\nelse\n"}},
		"base64":                 {[]string{"auth: " + code[:12] + "\n", "  " + code[12:30] + "\n", "  " + code[30:] + "\n"}, []string{"", "", "auth: " + code[:7] + "***" + code[44:] + "\n"}},
		"too little to wait for": {[]string{"is " + secret[:3] + "\n", secret[3:] + "\n"}, []string{"is " + secret[:3] + "\n", "is " + secret[:3] + "\n***\n"}},
		"the end":                {[]string{"is " + secret[:8] + "\n", ""}, []string{"", "is " + secret[:8] + "\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s redact.Secrets
			s.Add(secret)
			var out strings.Builder
			w := redact.NewLineWriter(&s, &out)
			for i, text := range c.writes {
				if text == "" {
					w.Flush()
				}
				_, err := io.WriteString(w, text)
				require.NoError(t, err)
				require.Equal(t, c.want[i], out.String())
			}
		})
	}
}

// TestWordsAreNoSecret: what is short is only found as it is.
func TestWordsAreNoSecret(t *testing.T) {
	var s redact.Secrets
	s.Add("hunter2")
	s.Add("correct horse")
	for in, want := range map[string]string{
		"hunter2, hunter 2":                  "***, hunter 2",
		"correct horse, correct\n  horse":    "***, ***",
		"correct is the horse":               "correct is the horse",
		"c&#111;rrect horse":                 "c&#111;rrect horse",
		"correct&#32;horse correct%20horse.": "*** ***.",
	} {
		require.Equal(t, want, s.Redact(in), in)
		require.Equal(t, in != want, s.In([]byte(in)), in)
	}
}
