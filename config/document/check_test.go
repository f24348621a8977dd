package document_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/document"
)

// TestCheck: texts and numbers are held against their tags, and nothing else.
func TestCheck(t *testing.T) {
	type section struct {
		Name  string   `json:"name" jsonschema:"pattern=^[a-z]{1\\,3}$" want:"one to three letters"`
		Size  int      `json:"size" jsonschema:"enum=1,enum=2"`
		Zone  string   `json:"zone,omitempty" jsonschema:"pattern=^z$" want:"z"`
		Names []string `json:"names" jsonschema:"enum=a"`
		Other *string  `json:"other" jsonschema:"pattern=^z$" want:"z"`
		Inner struct {
			Name string `json:"name" jsonschema:"pattern=^z$" want:"z"`
		} `json:"inner"`
	}
	problems := func(s section) []string {
		l := new(document.List)
		l.Check("x", &s)
		var out []string
		for _, p := range *l {
			out = append(out, p.String())
		}
		return out
	}
	text := "text"
	require.Empty(t, problems(section{Name: "abc", Size: 2, Names: []string{"b"}, Other: &text}))
	require.Equal(t, []string{
		`x.name: got nothing, want one to three letters`,
		`x.size: got 3, want 1 or 2`,
		`x.zone: got "y", want z`,
	}, problems(section{Size: 3, Zone: "y"}))
}
