package redact_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShortSecretsInBase64(t *testing.T) {
	for _, secret := range []string{"p4ss", "p4ss1", "p4ss12", "p4ss1xy", "p?ss~>1"} {
		for _, text := range []string{secret, secret + "\n"} {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				code := e.EncodeToString([]byte(text))
				require.Equal(t, "data: ***\n", written(t, secret, "data: "+code+"\n", 7), "%q as %s", text, code)
			}
		}
	}
}

func TestQuotedSecrets(t *testing.T) {
	for secret, as := range map[string][]string{
		`ab'cd`:    {`'ab''cd'`, `ab\'cd`, `ab\x27cd`, `ab\047cd`, `ab\u0027cd`},
		`ab"cd-ef`: {`"ab""cd-ef"`, `"ab\"cd-ef"`, `ab\042cd-ef`, `ab\0042cd-ef`},
		"pässwörd": {
			`$'p\303\244ssw\303\266rd'`, `b'p\xc3\xa4ssw\xc3\xb6rd'`, `"p\xC3\xA4ssw\xC3\xB6rd"`, `'p\xe4ssw\xf6rd'`,
			`p\u00e4ssw\u00f6rd`, `p\u{e4}ssw\u{f6}rd`, `p\x{e4}ssw\x{f6}rd`, `p%C3%A4ssw%c3%b6rd`, `"p\\303\\244ssw\\303\\266rd"`,
		},
		"key🔑word": {`key\360\237\224\221word`, `key\ud83d\udd11word`, `key\xf0\x9f\x94\x91word`, `key\u{1f511}word`, `key\U0001f511word`},
	} {
		for _, text := range as {
			got := written(t, secret, "is "+text+" end\n", 5)
			require.Regexp(t, `^is [$b]?["']?\*\*\*["']? end\n$`, got, "%s as %s", secret, text)
		}
	}
}
