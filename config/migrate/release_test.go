package migrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReleaseMovesAndRemoves(t *testing.T) {
	steps := []Step{
		{Version: "1.1.0", Move: map[string]string{"platform.settings.color": "platform.settings.look.color"}},
		{Version: "2.0.0", Move: map[string]string{"platform.components.database": "platform.components.postgresql"}, Remove: []string{"platform.components.welcome", "platform.settings.look.font"}},
	}
	for name, c := range map[string]struct {
		before, after string
		changes       []string
	}{
		"nothing of it is there": {before: "global: {name: a}\n", after: "global: {name: a}\n"},
		"the place in the file stays, and comments": {
			before:  "platform:\n  components: # mine\n    # where rows are\n    database: {enabled: false} # not here\n    guestbook: {enabled: false}\n    welcome: {enabled: false}\n",
			after:   "platform:\n  components: # mine\n    # where rows are\n    postgresql: {enabled: false} # not here\n    guestbook: {enabled: false}\n",
			changes: []string{"line 4: platform.components.database is now platform.components.postgresql", "line 6: platform.components.welcome is gone"},
		},
		"what had nothing else goes too": {
			before:  "provider: local\nplatform:\n  components:\n    welcome: {enabled: false}\n",
			after:   "provider: local\n",
			changes: []string{"line 4: platform.components.welcome is gone"},
		},
		"one release after the other": {
			before:  "platform:\n  settings: {color: red}\n",
			after:   "platform:\n  settings: {look: {color: red}}\n",
			changes: []string{"line 2: platform.settings.color is now platform.settings.look.color"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := decode(t, []byte(c.before))
			changes, problems := Release(root.Content[0], steps)
			require.Empty(t, problems)
			var got []string
			for _, change := range changes {
				got = append(got, change.String())
			}
			require.Equal(t, c.changes, got)
			require.Equal(t, c.after, string(encode(t, root)))
			again, _ := Release(root.Content[0], steps)
			require.Empty(t, again, "once is enough")
		})
	}
}

func TestReleaseNamesWhatIsInTheWay(t *testing.T) {
	move := []Step{{Version: "2.0.0", Move: map[string]string{"platform.settings.a": "platform.settings.b.c"}}}
	_, problems := Release(decode(t, []byte("platform:\n  settings:\n    b: {c: 1}\n    a: 2\n")).Content[0], move)
	require.Len(t, problems, 1)
	require.Equal(t, "line 4: platform.settings.a: got a value beside platform.settings.b.c (line 3), which is its name since release 2.0.0, want one of them", problems[0].String())
	_, problems = Release(decode(t, []byte("platform:\n  settings:\n    b: 1\n    a: 2\n")).Content[0], move)
	require.Len(t, problems, 1)
	require.Equal(t, "line 4: platform.settings.a: got a value whose place is platform.settings.b.c since release 2.0.0, where something else is around it, want a mapping around platform.settings.b.c", problems[0].String())
}

func TestBack(t *testing.T) {
	steps := []Step{
		{Version: "1.1.0", Move: map[string]string{"platform.settings.a": "platform.settings.b"}, Remove: []string{"platform.settings.x"}},
		{Version: "2.0.0", Move: map[string]string{"platform.settings.b": "platform.settings.c"}},
	}
	const text = "platform:\n  settings: {a: 1}\n"
	root := decode(t, []byte(text))
	_, problems := Release(root.Content[0], steps)
	require.Empty(t, problems)
	require.Equal(t, "platform:\n  settings: {c: 1}\n", string(encode(t, root)))
	_, problems = Release(root.Content[0], Back(steps))
	require.Empty(t, problems)
	require.Equal(t, text, string(encode(t, root)))
}

func TestSet(t *testing.T) {
	for text, want := range map[string]string{
		"platform:\n  release: 1.0.0 # first\n": "platform:\n  release: 2.0.0 # first\n",
		"global: {name: a}\n":                   "global: {name: a}\nplatform:\n  release: 2.0.0\n",
		"platform: {release: 2.0.0}\n":          "platform: {release: 2.0.0}\n",
	} {
		root := decode(t, []byte(text))
		changes := Set(root.Content[0], "platform.release", "2.0.0", nil)
		require.Equal(t, want, string(encode(t, root)))
		require.Equal(t, want != text, len(changes) == 1)
	}
}
