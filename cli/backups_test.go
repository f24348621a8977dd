package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
)

// someBackups are two of upgrades, one of a rollback, and one that cannot be read.
func someBackups() []contract.BackupSummary {
	at := time.Date(2026, 11, 24, 16, 0, 0, 0, time.UTC)
	return []contract.BackupSummary{
		{ID: "b1", Time: at, Reason: contract.ForUpgrade, From: "1.0.0", To: "1.1.0", Data: []contract.DataSummary{}},
		{ID: "b2", Time: at, Reason: contract.ForUpgrade, From: "1.1.0", To: "1.2.0", Data: []contract.DataSummary{{Name: "entries", Bytes: 120, Check: "3 rows"}, {Name: "words", Bytes: 7, Check: "whole"}}},
		{ID: "b3", Time: at, Reason: contract.ForRollback, From: "1.2.0", To: "1.1.0", Data: []contract.DataSummary{{Name: "entries", Bytes: 130}}},
		{ID: "b4", Problem: "it is torn"},
	}
}

func TestBackupsAreListed(t *testing.T) {
	var out strings.Builder
	require.NoError(t, listBackups(&out, someBackups()))
	require.Equal(t, `BACKUP  TIME (UTC)           BEFORE    FROM   TO     DATA     BYTES  CHECK
b1      2026-11-24 16:00:00  upgrade   1.0.0  1.1.0  -        -      -
b2      2026-11-24 16:00:00  upgrade   1.1.0  1.2.0  entries  120    3 rows
                                                     words    7      whole
b3      2026-11-24 16:00:00  rollback  1.2.0  1.1.0  entries  130    not checked
b4      not usable: it is torn
`, out.String())
	out.Reset()
	require.NoError(t, listBackups(&out, nil))
	require.Equal(t, "there is no backup; an upgrade makes one\n", out.String())
}

func TestAStyleThatIsNone(t *testing.T) {
	code, _, errs := slipway("upgrade", "--style", "violent")
	require.Equal(t, 2, code)
	require.Contains(t, errs, `--style is "violent"; give graceful or in-place`)
}
