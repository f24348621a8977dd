package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMatrixThatCannotBeRunIsRefused(t *testing.T) {
	withoutImages(t)
	for args, says := range map[string]string{
		"--to 1.1.0":                             "give --from",
		"--from 1.0.0":                           "give --to",
		"--from 1.0.0 --to 1.0.0":                "name the same release",
		"--from 1.0.0 --to 1.1.0 --style brutal": `--style is "brutal"; give graceful or in-place`,
		"--from 1.0.0 --to 1.1.0 --faults some":  `--faults is "some"; give none or kill-at-each-step`,
		"--from 1.0.0 --to 1.1.0 --parallel 0":   "--parallel is 0",
		"--from 1.0.0 --to 1.1.0 --shard 4/3":    `--shard: "4/3" is no shard`,
		"--from 1.1.0 --to 1.0.0":                "PLT-021",
		"--from 1.0.0 --to 3.0.0":                "there is no release 3.0.0",
		"--from ./none --to 1.1.0":               "a platform release is a directory",
	} {
		dir := filepath.Join(t.TempDir(), "results")
		code, _, said := slipway(append([]string{"upgrade-matrix", "--out", dir}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, "%s: %s", args, said)
		require.Contains(t, said, says, args)
		_, err := os.Stat(dir)
		require.ErrorIs(t, err, os.ErrNotExist, args)
	}
}
