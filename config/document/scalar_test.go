package document_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	helm "sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/document"
)

// TestOneReading: a value means in a configuration, and in a file of values, what it means to Helm.
func TestOneReading(t *testing.T) {
	for _, value := range []string{
		"no", "No", "NO", "nO", "yes", "on", "On", "off", "OFF", "y", "Y", "n", "N", "true", "False", "TRUE",
		`"no"`, `'on'`, "!!str no", "!!bool no", "null", "~", "", "Null", "nil", "none", "0755", "0o755", "1_000", "+1", "0x1F", "0b11",
		"1e3", "1.10", "2024-01-01", "2024-01-01T10:00:00Z", "22:30", "190:20:30", "1.2.3", "v1", "-0", ".5", "9007199254740992",
		"[on, off, {a: no, b: 'no'}]", "{deep: {flag: off, list: [y, 10]}}", "|\n    no\n", "-9007199254740992",
	} {
		t.Run(value, func(t *testing.T) {
			text := []byte("raw: " + value + "\n")
			asJSON, err := helm.YAMLToJSON(text)
			require.NoError(t, err)
			var want struct{ Raw json.RawMessage }
			require.NoError(t, json.Unmarshal(asJSON, &want))

			if value != "!!bool no" && value != "!!str no" { // nobody needs a tag in a configuration
				f, _, problems := decode(t, string(text))
				require.Empty(t, problems)
				got := string(f.Raw)
				if got == "" {
					got = "null"
				}
				require.JSONEq(t, string(want.Raw), got)
				require.Equal(t, digits(want.Raw), digits(f.Raw))
			}

			values, problems := document.Values(text)
			require.Empty(t, problems)
			got, err := json.Marshal(values["raw"])
			require.NoError(t, err)
			require.JSONEq(t, string(want.Raw), string(got))
			require.Equal(t, digits(want.Raw), digits(got))
		})
	}
}

// digits are those of a whole number; empty for anything else.
func digits(text []byte) string {
	var n json.Number
	if json.Unmarshal(text, &n) != nil {
		return ""
	}
	if _, err := n.Int64(); err != nil && len(n) < 19 {
		return ""
	}
	return n.String()
}

// TestWordsForTrueAndFalse are such where the configuration has true or false, and no text.
func TestWordsForTrueAndFalse(t *testing.T) {
	f, _, problems := decode(t, "flag: on\nitems: [{name: a, enabled: no}]\nbyName: {x: {enabled: off}, z: {enabled: Yes}}\n")
	require.Empty(t, problems)
	require.True(t, *f.Flag)
	require.False(t, f.Items[0].On)
	require.False(t, f.ByName["x"].On)
	require.True(t, f.ByName["z"].On)

	_, _, problems = decode(t, "text: no\nlabels:\n  country: NO\nwords: [y]\nraw:\n  y: 1\n  off: 2\n")
	require.Equal(t, []string{
		"line 1: text: got true or false, want text (put it in quotes)",
		"line 3: labels.country: got true or false, want text (put it in quotes)",
		"line 4: words[0]: got true or false, want text (put it in quotes)",
		"line 6: raw: got a key that is true or false, want text as key (put it in quotes)",
	}, problems)
	_, _, problems = decode(t, "text: 'no'\nlabels: {country: \"NO\"}\nwords: ['y']\nraw: {'y': 1}\n")
	require.Empty(t, problems)
}

// TestWhatNobodyKeeps of a file of values is named, with its line, before it is lost.
func TestWhatNobodyKeeps(t *testing.T) {
	_, problems := document.Values([]byte("a: {x: 1}\nb:\n  - {c: 1, c: 2}\na: {x: 2}\nid: 123456789012345678901234567890\n"))
	var told []string
	for _, p := range problems {
		told = append(told, p.String())
	}
	require.Equal(t, []string{
		"line 3: b[0].c: got the field again (first on line 3), want it once",
		"line 4: a: got the field again (first on line 1), want it once",
		"line 5: id: got a whole number beyond 2^53, want it in quotes: without them, digits are lost",
	}, told)
	_, problems = document.Values([]byte("- a\n"))
	require.Len(t, problems, 1)
	_, problems = document.Values([]byte("a: [\n"))
	require.Len(t, problems, 1)

	_, _, of := decode(t, "raw:\n  id: 9007199254740993\n")
	require.Equal(t, []string{"line 2: raw.id: got a whole number beyond 2^53, want it in quotes: without them, digits are lost"}, of)

	values, problems := document.Values([]byte("\ufeffbase: &b {x: 1, y1: 2}\nover: {<<: *b, x: 9007199254740992}\nother:\n  <<: *b\n  <<: *b\n"))
	require.Empty(t, problems, "merge keys are no duplicates")
	require.Equal(t, map[string]any{"x": 9007199254740992.0, "y1": 2.0}, values["over"])
	values, problems = document.Values(nil)
	require.Empty(t, problems)
	require.Empty(t, values)
}
