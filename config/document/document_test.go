package document_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/stretchr/testify/require"
)

type colour string

func (c *colour) UnmarshalText(b []byte) error {
	if string(b) != "red" && string(b) != "blue" {
		return errors.New("red or blue")
	}
	*c = colour(b)
	return nil
}

type item struct {
	Name string `json:"name"`
	On   bool   `json:"enabled"`
}

func (i *item) SetDefaults() { i.On = true }

type file struct {
	Text   string            `json:"text"`
	Number int               `json:"number"`
	Big    int64             `json:"big"`
	Flag   *bool             `json:"flag"`
	Colour colour            `json:"colour"`
	Raw    json.RawMessage   `json:"raw"`
	Words  []string          `json:"words"`
	Items  []item            `json:"items"`
	ByName map[string]item   `json:"byName"`
	Labels map[string]string `json:"labels,omitempty"`
	hidden string            //nolint:unused // not a field of the file
	Untold string            `json:"-"`
}

func decode(t *testing.T, text string, sections ...string) (file, map[string]json.RawMessage, []string) {
	t.Helper()
	doc, problems := document.Parse([]byte(text))
	var f file
	var raw map[string]json.RawMessage
	if doc != nil {
		var more []document.Problem
		raw, more = doc.Decode(&f, sections...)
		problems = doc.Merge(append(problems, more...)...)
	}
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return f, raw, out
}

func TestDecode(t *testing.T) {
	f, raw, problems := decode(t, `
text: "1.10"
number: -3
big: 7
flag: False
colour: red
raw: {a: [1, 2.5, true, null, x, 2020-01-02, "y"], big: .inf}
words: [a, 'b', "c"]
items:
  - name: one
  - {name: two, enabled: false}
byName:
  x: {}
labels: {a/b: c}
more: {k: v}
`, "more", "other")
	require.Equal(t, []string{"line 7: raw: got a value that JSON cannot hold, want text, finite numbers, true, false, lists and mappings"}, problems)
	require.Nil(t, f.Raw)
	flag := false
	require.Equal(t, file{
		Text: "1.10", Number: -3, Big: 7, Flag: &flag, Colour: "red", Words: []string{"a", "b", "c"},
		Items: []item{{"one", true}, {"two", false}}, ByName: map[string]item{"x": {"", true}}, Labels: map[string]string{"a/b": "c"},
	}, f)
	require.Equal(t, `{"k":"v"}`, string(raw["more"]))
	require.NotContains(t, raw, "other")
}

func TestDecode_raw(t *testing.T) {
	f, _, problems := decode(t, "raw:\n  a: [1, -0.0, 2.5, true, ~, x, 2020-01-02, '5', 0x1F, 9007199254740992]\n  b: {c: {}}\n")
	require.Empty(t, problems)
	require.Equal(t, `{"a":[1,-0,2.5,true,null,"x","2020-01-02","5",31,9007199254740992],"b":{"c":{}}}`, string(f.Raw))
}

func TestDecode_problems(t *testing.T) {
	_, _, problems := decode(t, `text: 1.10
number: 1.5
big: 99999999999
flag: "yes"
colour: green
words: {a: b}
items:
  - name: [x]
  -
  - {nam: a}
  - just text
byName: [x]
labels:
  a: true
hidden: x
Untold: y
`)
	require.Equal(t, []string{
		"line 1: text: got a number, want text (put it in quotes)",
		"line 2: number: got a number in another form, want a whole number in decimal digits, without leading zeros",
		"line 3: big: got a number out of range, want a whole number",
		"line 4: flag: got text, want true or false",
		`line 5: colour: got "green", want red or blue`,
		"line 6: words: got a mapping, want a list",
		"line 8: items[0].name: got a list, want text",
		"line 9: items[1]: got nothing, want a value",
		`line 10: items[2].nam: got an unknown field, want "name"`,
		"line 11: items[3]: got text, want a mapping",
		"line 12: byName: got a list, want a mapping",
		"line 14: labels.a: got true or false, want text (put it in quotes)",
		"line 15: hidden: got an unknown field, want one of big, byName, colour, flag, items, labels, number, raw, text, words",
		"line 16: Untold: got an unknown field, want one of big, byName, colour, flag, items, labels, number, raw, text, words",
	}, problems)
}

func TestDecode_wrongUsePanics(t *testing.T) {
	doc, _ := document.Parse([]byte("a: 1"))
	require.Panics(t, func() { doc.Decode(file{}) })
	require.Panics(t, func() { doc.Decode(new(int)) })
	require.Panics(t, func() {
		var x struct {
			A float32 `json:"a"`
		}
		doc.Decode(&x)
	})
}

func TestLine(t *testing.T) {
	doc, problems := document.Parse([]byte("version: 3\na:\n  b:\n    - c: 1\n    - d: 2\ntext: x\n"))
	require.Empty(t, problems)
	for field, line := range map[string]int{"a": 2, "a.b": 3, "a.b[1]": 5, "a.b[1].d": 5, "a.b[1].nothing": 5, "a.z": 2, "z": 0, "z.y[3]": 0} {
		require.Equal(t, line, doc.Line(field), field)
	}
}

func TestNearestName(t *testing.T) {
	for typed, want := range map[string]string{
		"txet": `"text"`, "TEXT": `"text"`, "nubmer": `"number"`, "byname": `"byName"`, "itms": `"items"`, "xyz": "one of ",
		strings.Repeat("x", 500): "one of ",
	} {
		_, _, problems := decode(t, typed+": 1")
		require.Len(t, problems, 1)
		require.Contains(t, problems[0], "want "+want, typed)
	}
}

func TestInvalid_long(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "unknown%d: x\n", i)
	}
	doc, problems := document.Parse([]byte(text.String()))
	require.Empty(t, problems)
	_, problems = doc.Decode(new(file))
	require.Len(t, problems, 500)
	err := &document.Invalid{Problems: problems}
	require.Equal(t, 102, len(strings.Split(err.Error(), "\n")))
	require.True(t, strings.HasSuffix(err.Error(), "\n  … and 400 more"))
}

func TestQuote(t *testing.T) {
	require.Equal(t, `"a\nb"`, document.Quote("a\nb"))
	require.Equal(t, `"`+strings.Repeat("é", 40)+`…"`, document.Quote(strings.Repeat("é", 41)))
}

func TestOneOf(t *testing.T) {
	require.Equal(t, "", document.OneOf())
	require.Equal(t, "a", document.OneOf("a"))
	require.Equal(t, "a, b or c", document.OneOf("a", "b", "c"))
}

func TestQuote_showsNoPassword(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                               `"plain"`,
		"ops@example.com":                     `"ops@example.com"`,
		"https://me:pa:s s/w@rd@host/path":    `"…@host/path"`,
		"me:pass@registry.example.com/a":      `"…@registry.example.com/a"`,
		"https://host/path?token=secret":      `"https://host/path?…"`,
		"a, http://me:pass@one,x:pass@two/@b": `"a, …@b"`,
		strings.Repeat("é", 41):               `"` + strings.Repeat("é", 40) + `…"`,
	} {
		require.Equal(t, want, document.Quote(text))
	}
	require.Equal(t, `"TOKEN=…"`, document.QuoteKey("TOKEN=secret"))
	require.Equal(t, `"password:…"`, document.QuoteKey("password:secret"))
}

func TestMerge_leavesOutWhatFollows(t *testing.T) {
	doc, problems := document.Parse([]byte("hots: a\nport: 1\nurl: [x]\n"))
	require.Empty(t, problems)
	got := doc.Merge(
		document.Problem{Field: "hots", Got: document.Unknown, Want: "host", Meant: "host"},
		document.Problem{Field: "host", Got: "nothing", Want: "a host"},
		document.Problem{Field: "port", Got: "a value", Want: "none without host", Cause: "host"},
		document.Problem{Field: "url[0]", Got: "x", Want: "y"},
		document.Problem{Field: "key", Got: "a value", Want: "none without url", Cause: "url"},
		document.Problem{Field: "user", Got: "a value", Want: "none without urls", Cause: "urls"},
	)
	var fields []string
	for _, p := range got {
		fields = append(fields, p.Field)
	}
	require.Equal(t, []string{"user", "hots", "url[0]"}, fields)
}

func TestParse_lineOfASyntaxError(t *testing.T) {
	for text, line := range map[string]int{
		"a: 1\nb: [1,\n  2]\nc: \"open\nd: 1\n":       4,
		"a:\n  b: 1\n c: 1\n":                         3,
		"a: 1\nscript: |\n  x\n  \ty\nb: *z\n":        5,
		"{\n  \"a\": 1,\n  \"b\": 2\n  \"c\": 3\n}\n": 4,
	} {
		doc, problems := document.Parse([]byte(text))
		require.Nil(t, doc, text)
		require.Len(t, problems, 1)
		require.Equal(t, line, problems[0].Line, "%s: %v", text, problems[0])
	}
}
