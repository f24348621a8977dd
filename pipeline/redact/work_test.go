package redact

import (
	"crypto/sha512"
	"encoding/base64"
	"io"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkIsLinear: a writer looks at each byte a few times, and once more for each line of a
// secret, whatever is written and in what pieces.
func TestWorkIsLinear(t *testing.T) {
	long := ""
	for i := range 8 {
		sum := sha512.Sum512([]byte{byte(i)})
		long += base64.StdEncoding.EncodeToString(sum[:]) + "\n"
	}
	const size = 80_000
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for _, secret := range []string{`$Qx9LmZt7fk2WvB4nRp8sHd6gJc3y`, long} {
		begin := secret[:min(6, len(secret)-1)]
		for name, text := range map[string]string{
			"backslashes":             fill(`\`),
			"lines of them":           fill("\\\n"),
			"after what may begin it": begin + "\n" + fill("\\\n"),
			"between":                 begin + fill(`\`) + secret[len(begin):],
			"ESC":                     fill("\x1b]"),
			"parameters":              fill("\x1b[" + strings.Repeat("1;", 50)),
			"C1":                      fill("\u009d"),
			"begin of it":             fill(begin + "\n"),
			"blanks":                  begin + "\n" + fill(" \n"),
		} {
			for _, n := range []int{size, 100} {
				var s Secrets
				s.Add(secret)
				w := NewLineWriter(&s, io.Discard)
				for rest := text; len(rest) > 0; {
					n := min(n, len(rest))
					_, _ = io.WriteString(w, rest[:n])
					rest = rest[n:]
				}
				w.Flush()
				require.Less(t, w.work, (8+strings.Count(secret, "\n"))*len(text), "%.8q: %s in pieces of %d", secret, name, n)
			}
		}
	}
}

// TestRunsAreOneAlternative: how long a match takes depends on how many alternatives a form has.
func TestRunsAreOneAlternative(t *testing.T) {
	steps := func(n int) int {
		parsed, err := syntax.Parse(newForm("a"+strings.Repeat(`\`, n)+"b").like.String(), syntax.Perl)
		require.NoError(t, err)
		prog, err := syntax.Compile(parsed)
		require.NoError(t, err)
		return len(prog.Inst)
	}
	require.Equal(t, steps(1), steps(3000))
}

func BenchmarkBackslashes(b *testing.B) {
	var s Secrets
	s.Add(`p@ss\w/rd $x`)
	text := strings.Repeat(`\`, 300_000) + "\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = io.WriteString(NewLineWriter(&s, io.Discard), text)
	}
}
