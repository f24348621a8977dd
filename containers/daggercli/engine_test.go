package daggercli

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

// TestTheEngineMakesRoomBeforePreflightRefuses for lack of it.
func TestTheEngineMakesRoomBeforePreflightRefuses(t *testing.T) {
	var policy struct{ MinFreeSpace string }
	require.NoError(t, json.Unmarshal([]byte(EnginePolicy), &policy))
	gb, found := strings.CutSuffix(policy.MinFreeSpace, "GB")
	require.True(t, found)
	free, err := strconv.ParseInt(gb, 10, 64)
	require.NoError(t, err)
	require.Greater(t, free*1e9, int64(config.ProfileOf(config.Default().Global.Scale).DiskGiB)<<30)
}
