package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Seal gives a plan its digest: that of all that is in it but the digest itself, the time, the
// phases, which are only names, and the releases that follow.
func (p *Plan) Seal() error {
	plain := *p
	plain.Digest, plain.Made, plain.Phases, plain.Later = "", time.Time{}, nil, nil
	text, err := json.Marshal(plain)
	if err == nil { // as it reads back: what is no UTF-8 is written in another way then
		var again Plan
		if err = json.Unmarshal(text, &again); err == nil {
			text, err = json.Marshal(again)
		}
	}
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	sum := sha256.Sum256(text)
	p.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return nil
}
