package answers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	providers "github.com/slipway-sh/slipway/providers/all"
)

func formInterview(t *testing.T) *answers.Interview {
	t.Helper()
	all := providers.All()
	s := answers.NewSchema(config.Describe(all.Sections()), nil)
	d, err := answers.NewDraft(s, nil)
	require.NoError(t, err)
	return &answers.Interview{Schema: s, Draft: d, Given: map[string]bool{}, Components: []answers.Component{{Name: "guestbook", On: true}, {Name: "toolbox"}},
		Check: func(text []byte) []config.Problem {
			_, err := config.Load(text, all.Options())
			return config.Problems(err)
		}}
}

// accessible is a form for screen readers, and what it shows.
func accessible(lines ...string) (answers.Form, *bytes.Buffer) {
	var out bytes.Buffer
	return answers.Form{In: strings.NewReader(strings.Join(lines, "\n") + "\n"), Out: &out, Accessible: true}, &out
}

func TestAnAccessibleFormAsksOneAfterTheOther(t *testing.T) {
	v := formInterview(t)
	pages := v.Schema.Rest("local", v.Components)
	f, out := accessible(
		"Bad", "blue", "", "ops@example.com", "7", "2", // deployment
		"80,443", "", "", "", // local
		"2", "0", // components
		"2", "0", // more
		"", "http://p:1", "-",
	)
	all, err := f.Ask(t.Context(), v, pages, v.Before(pages), false)
	require.NoError(t, err, out.String())
	d, problems := v.With(pages, all)
	require.Empty(t, problems)
	for path, want := range map[string]string{
		"global.name": "blue", "global.domain": "slipway.test", "global.admin.email": "ops@example.com", "global.scale": "100",
		"local.ports": "80,443", "platform.components.toolbox.enabled": "true", "platform.components.guestbook.enabled": "",
		"proxy.https": "http://p:1", "proxy.http": "", "smtp.host": "",
	} {
		require.Equal(t, want, d.Get(path), path)
	}
	text := out.String()
	require.Contains(t, text, `global.name [slipway]: got "Bad", want 1 to 15 lower-case letters`)
	require.Contains(t, text, "2. 100: 2 CPUs, 8 GiB of memory, 40 GiB of disk\n")
	require.Contains(t, text, "must be a number between 1 and 4")
	require.NotContains(t, text, "smtp.host", "sections that were not chosen are not asked for")
}

func TestAnAccessibleFormClearsAnAnswer(t *testing.T) {
	v := formInterview(t)
	pages := []answers.Page{{Title: "Where", Questions: []answers.Question{{Field: answers.Field{Path: "global.admin.email", Type: answers.Text}}}}}
	for line, want := range map[string]string{"": "a@b.example", "-": "", "c@d.example": "c@d.example"} {
		f, _ := accessible(line)
		all, err := f.Ask(t.Context(), v, pages, map[string]string{"global.admin.email": "a@b.example"}, false)
		require.NoError(t, err)
		require.Equal(t, want, all["global.admin.email"], line)
	}
}

func TestAnAccessibleFormChooses(t *testing.T) {
	options := []answers.Option{{Answer: "write", Label: "Yes"}, {Answer: "quit", Label: "No"}}
	f, out := accessible("", "3", "2")
	first, err := f.Choose(t.Context(), "Write it?", options)
	require.NoError(t, err)
	require.Equal(t, "write", first)
	require.Contains(t, out.String(), "Write it? [Yes]:")
	second, err := f.Choose(t.Context(), "Write it?", options)
	require.NoError(t, err)
	require.Equal(t, "quit", second)
	require.Contains(t, out.String(), "must be a number between 1 and 2")
	_, err = f.Choose(t.Context(), "Write it?", options)
	require.ErrorIs(t, err, answers.ErrAborted, "there is nothing more")
}

// TestAFormShowsNothingButText: the schema of a release's settings, and a package's configuration,
// are others'.
func TestAFormShowsNothingButText(t *testing.T) {
	const evil = "x\x1b[2J\x1b]52;c;cm0=\a\u202e\u200b\nslipway: forged"
	field := answers.Field{Path: "platform.settings." + evil, Help: evil, Default: evil, Example: evil, Examples: []string{evil}}
	choices := []answers.Option{{Answer: evil, Label: evil}, {Answer: "b", Label: "b"}}
	pages := []answers.Page{{Title: evil, Help: evil, Questions: []answers.Question{
		{Field: field},
		{Field: answers.Field{Path: "c" + evil, Help: evil}, Kind: answers.Choice, Choices: choices},
		{Field: answers.Field{Path: "s" + evil, Help: evil}, Kind: answers.Several, Choices: choices},
	}}}
	for _, before := range []string{"", evil} {
		for _, accessible := range []bool{false, true} {
			t.Run(fmt.Sprint(accessible), func(t *testing.T) {
				var out bytes.Buffer
				in, end := io.Pipe()
				t.Cleanup(func() { _ = end.Close() })
				f := answers.Form{In: in, Out: &out, Accessible: accessible}
				if accessible {
					f.In = strings.NewReader("9\n1\n9\n1\n9\n1\n1\n")
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, answers.ErrAborted)
				defer cancel()
				v := formInterview(t)
				_, err := f.Ask(ctx, v, pages, map[string]string{field.Path: before}, false)
				_, again := f.Choose(ctx, evil, choices)
				t.Log(err, again)
				shown := out.String()
				require.Contains(t, shown, "forged")
				for _, bad := range []string{"\x1b[2Jx", "x\x1b[2J", "]52;", "\a", "\u202e", "\u200b", "\nslipway: forged"} {
					require.NotContains(t, shown, bad, "%q", shown)
				}
			})
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("no such terminal") }

func TestAnAccessibleFormSaysWhyThereAreNoAnswers(t *testing.T) {
	v := formInterview(t)
	pages := v.Schema.First()
	_, err := answers.Form{In: broken{}, Out: io.Discard, Accessible: true}.Ask(t.Context(), v, pages, v.Before(pages), false)
	require.ErrorContains(t, err, "no such terminal")
	require.NotErrorIs(t, err, answers.ErrAborted)

	in, end := io.Pipe()
	defer func() { _ = end.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(answers.ErrAborted)
	_, err = answers.Form{In: in, Out: io.Discard, Accessible: true}.Ask(ctx, v, pages, v.Before(pages), false)
	require.ErrorIs(t, err, answers.ErrAborted)
}
