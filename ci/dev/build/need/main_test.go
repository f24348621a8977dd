package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"sh=dash ls=coreutils", 0, ""},
		{"chromium", 2, `"chromium" is not COMMAND=PACKAGE`},
		{"=dash", 2, "is not COMMAND=PACKAGE"},
	} {
		var errs strings.Builder
		require.Equal(t, c.code, run(strings.Fields(c.args), &errs))
		require.Contains(t, errs.String(), c.says)
	}
	t.Setenv("PATH", t.TempDir()) // without apt-get
	var errs strings.Builder
	require.Equal(t, 3, run([]string{"no-such-command=some-package"}, &errs))
	require.Contains(t, errs.String(), "ENG-003")
	require.Contains(t, errs.String(), "\n  remedy: ", "as the program prints it")
	require.Contains(t, errs.String(), "some-package")
}
