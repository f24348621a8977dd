package conductor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
)

// requests makes the requests to the steps of a run. The same values make the same requests, so a result
// that verifyAll has verified is valid for the step of the run.
type requests struct {
	run string // its id
	contract.Inputs
}

func (r requests) of(s contract.Spec, in any) (contract.Request, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return contract.Request{}, fmt.Errorf("encode the input of %s: %w", s, err)
	}
	lasting := input
	if v, ok := in.(contract.Volatile); ok {
		if lasting, err = json.Marshal(v.CacheKey()); err != nil {
			return contract.Request{}, fmt.Errorf("encode the input of %s: %w", s, err)
		}
	}
	code := ""
	if s.Code != (pipeline.Key{}) {
		code = s.Code.String()
	}
	return contract.Request{
		Run: r.run, Stage: s.Stage, Step: s.Name, Code: code, Timeout: contract.Duration(cmp.Or(s.Timeout, time.Duration(r.Config.Advanced.Timeouts.Step))),
		Deployment: r.Config.Global.Name, Digests: r.digests(s, lasting), Input: input,
		Cluster: !s.Offline,
	}, nil
}

// digests are what an earlier result of a step must match to be reused: its input, the
// platform release if it reads that, and the tools and images of the run.
func (r requests) digests(s contract.Spec, input []byte) journal.Digests {
	sum := func(parts ...string) string {
		h := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(h, "%d:%s\n", len(part), part)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	release := ""
	if s.Platform {
		release = r.ReleaseDigest
	}
	return journal.Digests{Input: sum(s.String(), string(input)), Release: sum(release), Tools: sum(r.ImagesDigest)}
}
