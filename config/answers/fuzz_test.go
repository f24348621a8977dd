package answers_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/document"
)

// FuzzAnswer: an answer that is text reads back from the file as it was given, whatever
// is in it, or the file is refused when it is read.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"a", "true", "1", " a", "a ", "a: b", "#x", "a\nb\n", "\n", "\ta\n b", "a\r\nb", "'", `"`, "---", "é", "{a", "| x", "null", "~", "=", "<<", "0x1", "2020-01-01", "a\u2028b", "\ufeffx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || !utf8.ValidString(s) {
			return
		}
		sc := schema(t, "")
		field, wrong := sc.Field("global.domain")
		require.Nil(t, wrong)
		d := draft(t, sc, "")
		require.Nil(t, d.Set(field, s))
		text, err := d.Bytes()
		require.NoError(t, err)
		doc, problems := document.Parse(text)
		if doc == nil || len(problems) > 0 {
			return // it says why
		}
		require.Equal(t, s, doc.Text("global.domain"), "in\n%s", text)
		again, err := answers.NewDraft(sc, text)
		require.NoError(t, err)
		twice, err := again.Bytes()
		require.NoError(t, err)
		require.Equal(t, string(text), string(twice))
	})
}
