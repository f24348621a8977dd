package redact_test

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// between is what shows nothing, and so does not keep the parts of a secret apart.
var between = map[string]string{
	"colour": "\x1b[01;31m\x1b[K", "bold": "\x1b[1m", "parameters with NUL": "\x1b[3\x001m", "colons": "\x1b[38:2::1:2:3m",
	"title": "\x1b]0;title\a", "link": "\x1b]8;;https://example.org\x1b\\", "DCS": "\x1bP1$r0m\x1b\\", "charset": "\x1b(B",
	"C1 CSI": "\u009b1m", "C1 CSI in 8 bits": "\x9b1m", "C1 OSC": "\u009d0;x\u009c", "C1": "\u0085",
	"zero width space": "\u200b", "zero width joiner": "\u200d", "BOM": "\ufeff", "soft hyphen": "\u00ad", "grapheme joiner": "\u034f", "variation": "\ufe0f", "filler": "\u3164",
	"bidi": "\u202e", "isolate": "\u2066", "tag": "\U000e0041",
	"NUL": "\x00", "DEL": "\x7f", "return": "\r", "bell": "\a", "two": "\x00\x1b[1m\u200b",
	"quoted colour": `\x1b[1m`, "colour in JSON": `\u001b[1m`, "in JSON in JSON": `\\u001b[1m`, "zero width in JSON": `\u200b`, "octal": `\033[1m`, "e": `\e[1m`,
}

func TestASecretThatIsShownInPiecesIsMasked(t *testing.T) {
	for _, secret := range []string{"hunter2", "p@ss w/rd", "Qx9LmZt7fk2WvB4nRp8sHd6gJc3y"} {
		for name, mark := range between {
			for at := 1; at < len(secret); at++ {
				var s redact.Secrets
				s.Add(secret)
				text := "is " + secret[:at] + mark + secret[at:] + " end\n"
				require.Equal(t, "is *** end\n", s.Redact(text), "%s at %d of %s", name, at, secret)
				require.True(t, s.In([]byte(text)), name)
				require.Equal(t, "is *** end\n", written(t, secret, text, 1), "%s at %d of %s", name, at, secret)
			}
			each := "is " + strings.Join(strings.Split(secret, ""), mark) + " end\n"
			require.Equal(t, "is *** end\n", written(t, secret, each, 3), "%s in %s", name, secret)
		}
	}
	require.Equal(t, "is *** end\n", written(t, "hunter2", "is h\bhu\bun\bnt\bte\ber\br2\b2 end\n", 4), "struck over")
}

// written is what a writer that masks secret makes of text, written in pieces of n bytes.
func written(t *testing.T, secret, text string, n int) string {
	t.Helper()
	var s redact.Secrets
	s.Add(secret)
	var out strings.Builder
	w := redact.NewLineWriter(&s, &out)
	for len(text) > 0 {
		n := min(n, len(text))
		_, err := io.WriteString(w, text[:n])
		require.NoError(t, err)
		text = text[n:]
	}
	w.Flush()
	return out.String()
}

// TestGrepInColour: a hook that looks for a part of a secret with the real grep, which marks it.
// TestASecretThatBeginsWithAnotherOne is masked as a whole, also in pieces.
func TestASecretThatBeginsWithAnotherOne(t *testing.T) {
	var r redact.Secrets
	r.Add("pass1234")
	r.Add("pass1234-production-db")
	for in, want := range map[string]string{
		"x pass1234-production-db y":               "x *** y",
		"x pass1234-produ\nction-db y":             "x *** y",
		"x pass1234\x1b[0m-production-db y":        "x *** y",
		"\x1b[1mx\x1b[0m pass1234-production-db y": "\x1b[1mx\x1b[0m *** y",
		"\x1b[1mx\x1b[0m pass1234 y":               "\x1b[1mx\x1b[0m *** y",
	} {
		require.Equal(t, want, r.Redact(in), "%q", in)
	}
}

func TestGrepInColour(t *testing.T) {
	const secret = "Qx9LmZt7fk2WvB4n"
	for _, pattern := range []string{"LmZ", "[0-9]", ".", "Qx", "4n$", "x*"} {
		out, err := exec.Command("sh", "-c", `printf 'a line\ntoken %s\n' "$1" | grep --color=always -e "$2" -e token`, "hook", secret, pattern).Output()
		require.NoError(t, err)
		require.NotContains(t, string(out), secret, "grep marks nothing for %q", pattern)
		for n := 1; n <= len(out); n++ {
			got := written(t, secret, string(out), n)
			require.True(t, strings.HasSuffix(got, "token ***\n"), "%q in pieces of %d: %q", pattern, n, got)
		}
	}
}

// TestNothingWritesToATerminal: whatever is written can be shown.
func TestNothingWritesToATerminal(t *testing.T) {
	for name, mark := range between {
		if strings.HasPrefix(mark, `\`) {
			continue
		}
		got := written(t, "hunter2", "safe"+mark+"text\n"+strings.Repeat("long"+mark, 8_000)+"\n", 1000)
		require.Equal(t, redact.Printable(got), got, name)
		require.Contains(t, got, "safe", name)
	}
	require.Equal(t, "10 %\n20 %\nend\n", written(t, "hunter2", "10 %\r20 %\r\nend", 100), "a bar of progress has lines")
}

func TestPrinter(t *testing.T) {
	for name, mark := range between {
		if strings.HasPrefix(mark, `\`) {
			continue
		}
		text := "safe" + mark + "text: "
		for at := range len(text) + 1 {
			var out strings.Builder
			w := redact.NewPrinter(&out)
			for _, part := range []string{text[:at], text[at:]} {
				_, err := io.WriteString(w, part)
				require.NoError(t, err)
			}
			require.Equal(t, redact.Printable(out.String()), out.String(), "%s at %d", name, at)
			require.True(t, strings.HasSuffix(out.String(), "text: "), "a question has no line break: %s at %d", name, at)
		}
	}
}
