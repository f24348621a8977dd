package secrets

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// TestAFileOfVariables is read as readers of .env files do.
func TestAFileOfVariables(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	for text, want := range map[string]map[string]string{
		"# ours\n\nA=b=c \n  KEY=\"-----BEGIN\\nx\\n\"\nEMPTY=\n": {"A": "b=c", "KEY": "-----BEGIN\nx\n", "EMPTY": ""},
		"A=plain":                                   {"A": "plain"},
		"export A=x\n  export\tB = y\nC= z":         {"A": "x", "B": "y", "C": "z"},
		"\ufeffA=bom\r\nB='two'\r\n\r\nC=\"c\"\r\n": {"A": "bom", "B": "two", "C": "c"},
		`A='a$b"c\n # x'`:                           {"A": `a$b"c\n # x`},
		`A="a\$b\"c\nline2\t\\n"`:                   {"A": "a$b\"c\nline2\t\\n"},
		`A="it's"` + "\n" + `B="\u00fc \'"`:         {"A": "it's", "B": "ü '"},
		"A=val # comment\nB=a#b\nC='v' # c\nD=\"v\"\t#c\nE= # nothing\nF=#c\nG=http://a/#b": {"A": "val", "B": "a#b", "C": "v", "D": "v", "E": "", "F": "", "G": "http://a/#b"},
		"A=a\nA=b": {"A": "b"},
		"A='" + key + "'\nB=\"" + key + "\"\nC=c\n": {"A": key, "B": key, "C": "c"},
		"A=p$1 5$ $ a$.b":                         {"A": "p$1 5$ $ a$.b"},
		`A={"kind": "Config", "n": [{"a": "b"}]}`: {"A": `{"kind": "Config", "n": [{"a": "b"}]}`},
		`A=back\slash`:                            {"A": `back\slash`},
		"A=''\nB=\"\"\nC=it's":                    {"A": "", "B": "", "C": "it's"},
		`A='x' `:                                  {"A": "x"},
		"":                                        {},
	} {
		got, err := Lines(text, isVariable)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{
		"A=1\nhunter22": "line 2 is not NAME=value", "a b=hunter22": "line 1 is not NAME=value", "=hunter22": "line 1 is not NAME=value",
		"A: hunter22": "line 1 is not NAME=value", "export A": "line 1 is not NAME=value", "A='x\ny'\nhunter22": "line 3 is not NAME=value",
		`A="hunter22`: "line 1, A: the quotes are not closed", "B=1\nA='hunter22\n": "line 2, A: the quotes are not closed", `A="hunter22\"`: "the quotes are not closed",
		`A='hunter22'x`: "line 1, A: there is text behind the quotes", `A='a''hunter22'`: "there is text behind the quotes",
		"A=hunter22$w#x y": "line 1, A: it has $ before a name", "A=${hunter22}": "put the value in single quotes", `A="a${hunter22}"`: `write \$, or put`, `A=$(hunter22)`: "it has $ before a name",
		`A="\\$hunter22"`: "it has $ before a name", `A="\qhunter22"`: "a backslash in the quotes begins no escape",
	} {
		_, err := Lines(text, isVariable)
		require.ErrorContains(t, err, says, text)
		require.NotContains(t, err.Error(), "hunter22")
	}
}

// TestTheFileIsCheckedBeforeARun for what the configuration refers to.
func TestTheFileIsCheckedBeforeARun(t *testing.T) {
	cfg := config.Default()
	cfg.SMTP.Password = "env:PW1"
	require.NoError(t, new(Flags).Check(cfg))
	for text, says := range map[string]string{"PW1='x'\nOTHER=\n": "", "OTHER=x\n": "", "PW1=\n": "find smtp.password: PW1 is empty in the file of --secrets", "PW1: x\n": "read the secrets of --secrets: line 1 is not NAME=value"} {
		f := Flags{SecretsFile: filepath.Join(t.TempDir(), "secrets.env")}
		require.NoError(t, os.WriteFile(f.SecretsFile, []byte(text), 0o600))
		if err := f.Check(cfg); says == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, says)
			require.Equal(t, fault.Usage, fault.ClassOf(err))
		}
	}
}
