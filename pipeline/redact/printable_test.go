package redact_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"as it is: ünïcode\n\tand tabs\n":                       "as it is: ünïcode\n\tand tabs\n",
		"\x1b[31mred\x1b[0m \x1b[2K\x1b[1;5Hup":                 "red up",
		"a\x1b]52;c;cm0gLXJmIH4=\x07b":                          "ab", // to the clipboard
		"a\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\": "alink",
		"a\x1bP+q544e\x1b\\b \x1b_apc\x1b\\c \x1b(B":            "ab c ",
		"a\u009b31mb":                                     "ab",
		"10 %\r20 %\x00\x08\x7f\u0085":                    "10 %20 %",
		"safe\u202egnp.exe \u2066x\u2069 zero\u200bwidth": "safegnp.exe x zerowidth",
		"â\u0080\u009d stays":                             "â stays",
		"\xff":                                            "\ufffd",
	} {
		require.Equal(t, want, redact.Printable(in), "%q", in)
		require.Equal(t, want, redact.Printable(want), "%q", in)
	}
}

func TestCommandsOfCI(t *testing.T) {
	for in, want := range map[string]string{
		"names ##vso[task.setvariable variable=PATH]/tmp, which":  "names # #vso[task.setvariable variable=PATH]/tmp, which",
		"a ##[error]b ###[c] ##VSO[x]\n##\x1b[1m[group]\n":        "a # #[error]b ## #[c] # #VSO[x]\n# #[group]\n",
		"a\n::set-env name=A::b\n  ::warning::c\n:\u200b:d\n:::e": "a\n: :set-env name=A::b\n  : :warning::c\n: :d\n: ::e",
		"## title, #[x], std::string a::b\n":                      "## title, #[x], std::string a::b\n",
	} {
		require.Equal(t, redact.Plain(strings.NewReplacer("# #", "##", ": :", "::").Replace(want)), redact.Printable(in), "elsewhere it stays: %q", in)
		for _, system := range []string{"TF_BUILD", "GITHUB_ACTIONS"} {
			t.Setenv(system, "true")
			require.Equal(t, want, redact.Printable(in), "%q", in)
			require.Equal(t, want, redact.Printable(want), "%q", in)
			for at := range in {
				var out strings.Builder
				w := redact.NewPrinter(&out)
				for _, part := range []string{in[:at], in[at:] + "\n"} {
					_, err := io.WriteString(w, part)
					require.NoError(t, err)
				}
				require.Equal(t, redact.Printable(out.String()), out.String(), "%q at %d", in, at)
				require.Equal(t, strings.ReplaceAll(want, " ", "")+"\n", strings.ReplaceAll(out.String(), " ", ""), "%q at %d", in, at)
			}
			t.Setenv(system, "")
		}
	}
}
