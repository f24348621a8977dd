package sigstore

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-openapi/runtime"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/stretchr/testify/require"
)

// serveLog serves the transparency log, as Rekor does to who signs: it takes each entry and forgets
// it. It returns the log's URL.
func serveLog(t *testing.T, of *ca.VirtualSigstore) string {
	t.Helper()
	id, err := of.RekorLogID()
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/log/entries" {
			http.NotFound(w, r)
			return
		}
		entry, err := enter(r, of, id)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{id: entry}) // who asks has gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// enter is what the log with this id answers to a request.
func enter(r *http.Request, of *ca.VirtualSigstore, id string) (*models.LogEntryAnon, error) {
	proposed, err := models.UnmarshalProposedEntry(r.Body, runtime.JSONConsumer())
	if err != nil {
		return nil, err
	}
	entry, err := types.CreateVersionedEntry(proposed)
	if err != nil {
		return nil, err
	}
	body, err := types.CanonicalizeEntry(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	at, index := time.Now().Unix(), int64(0)
	encoded := base64.StdEncoding.EncodeToString(body)
	promise, err := of.RekorSignPayload(tlog.RekorPayload{Body: encoded, IntegratedTime: at, LogIndex: index, LogID: id})
	if err != nil {
		return nil, err
	}
	proof, err := of.GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	if proof.Hashes == nil {
		proof.Hashes = []string{}
	}
	return &models.LogEntryAnon{Body: encoded, IntegratedTime: &at, LogID: &id, LogIndex: &index,
		Verification: &models.LogEntryAnonVerification{SignedEntryTimestamp: promise, InclusionProof: proof}}, nil
}
