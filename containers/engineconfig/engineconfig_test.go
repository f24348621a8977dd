package engineconfig

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
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
