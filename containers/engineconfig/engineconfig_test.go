package engineconfig

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

func TestThePolicyIsRecognised(t *testing.T) {
	var config struct {
		GC struct {
			Policies []struct {
				Filters       []string `json:"filters"`
				ReservedSpace int64    `json:"reservedSpace"`
			} `json:"policies"`
		} `json:"gc"`
	}
	require.NoError(t, json.Unmarshal([]byte(Text), &config))
	require.Len(t, config.GC.Policies, 1)
	require.Equal(t, []string{"type!=exec.cachemount"}, config.GC.Policies[0].Filters)
	require.EqualValues(t, Reserved, config.GC.Policies[0].ReservedSpace)
	require.Regexp(t, `dagger[/\\]engine\.json$`, File())
}

// TestTheEngineMakesRoomBeforePreflightRefuses for lack of it.
func TestTheEngineMakesRoomBeforePreflightRefuses(t *testing.T) {
	var policy struct{ MinFreeSpace string }
	require.NoError(t, json.Unmarshal([]byte(Policy), &policy))
	gb, found := strings.CutSuffix(policy.MinFreeSpace, "GB")
	require.True(t, found)
	free, err := strconv.ParseInt(gb, 10, 64)
	require.NoError(t, err)
	require.Greater(t, free*1e9, int64(config.ProfileOf(config.Default().Global.Scale).DiskGiB)<<30)
}

func TestWhichFilesKeepVolumes(t *testing.T) {
	for text, keeps := range map[string]bool{
		Text:                         true,
		Text[:len(Text)/2]:           false,
		`{}`:                         false,
		`{"gc": {"enabled": false}}`: false,
		`{"gc": {"policies": [{"filters": ["type==source.local"], "maxUsedSpace": "1GB"}, ` + Policy + `]}}`:     true,
		`{"gc": {"policies": [{"all": true, "maxUsedSpace": "1GB"}, ` + Policy + `]}}`:                           false,
		`{"gc": {"policies": [{"filters": ["type==exec.cachemount,inuse==false"]}, ` + Policy + `]}}`:            false,
		`{"gc": {"policies": [{"filters": ["type==source.local", "inuse==false"]}, ` + Policy + `]}}`:            false,
		`{"gc": {"policies": [` + Policy + `, {"filters": ["type!=exec.cachemount"], "reservedSpace": "5GB"}]}}`: false,
	} {
		require.Equal(t, keeps, Keeps([]byte(text)), text)
	}
}
