// Package sigstoretest signs without a key in tests: with a certificate authority, a time
// stamping authority and a transparency log that are made for the test.
package sigstoretest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/slipway-sh/slipway/containers/trust"
)

// Who signs, and who vouched for that.
const (
	Subject = "builder@example.com"
	Issuer  = "https://oidc.example.com"
)

// Sigstore is an instance of its own.
type Sigstore struct{ Virtual *ca.VirtualSigstore }

// New makes one.
func New(t *testing.T) *Sigstore {
	t.Helper()
	v, err := ca.NewVirtualSigstore()
	require.NoError(t, err)
	return &Sigstore{v}
}

// Parts are those of a trusted root.
type Parts struct {
	Authority        *root.FulcioCertificateAuthority
	Time             []root.TimestampingAuthority
	Logs, Certified  map[string]*root.TransparencyLog
	WithCertificates bool // Certified, logs of certificates, is part of it
}

// Root is the text of the trusted root; change may change its parts. It has no log of
// certificates, for those that are made here are in none.
func (s *Sigstore) Root(t *testing.T, change func(*Parts)) []byte {
	t.Helper()
	authority := *s.Virtual.FulcioCertificateAuthorities()[0].(*root.FulcioCertificateAuthority)
	p := Parts{Authority: &authority, Time: s.Virtual.TimestampingAuthorities(), Logs: logs(t, s.Virtual.RekorLogs()), Certified: logs(t, s.Virtual.CTLogs())}
	if change != nil {
		change(&p)
	}
	if !p.WithCertificates {
		p.Certified = nil
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{p.Authority}, p.Certified, p.Time, p.Logs)
	require.NoError(t, err)
	text, err := trusted.MarshalJSON()
	require.NoError(t, err)
	return text
}

// logs are those of an instance, by ids that are bytes, as a file has them.
func logs(t *testing.T, of map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	t.Helper()
	all := maps.Clone(of)
	for id, l := range all {
		changed, err := *l, error(nil)
		changed.ID, err = hex.DecodeString(id)
		require.NoError(t, err)
		all[id] = &changed
	}
	return all
}

// RootFile is a file with the trusted root.
func (s *Sigstore) RootFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	require.NoError(t, os.WriteFile(file, s.Root(t, nil), 0o600))
	return file
}

// Statement is about a file with this digest, "sha256:<hex>", and has an empty provenance.
func Statement(digest string) trust.Statement[trust.Provenance] {
	return trust.Statement[trust.Provenance]{
		Type: trust.StatementType, PredicateType: trust.ProvenanceType,
		Subject: []trust.Subject{{Name: "bundle.json", Digest: map[string]string{"sha256": digest[len("sha256:"):]}}},
	}
}

// Attest signs a statement, as cosign attest-blob does.
func (s *Sigstore) Attest(t *testing.T, statement any) *protobundle.Bundle {
	t.Helper()
	payload, err := json.Marshal(statement)
	require.NoError(t, err)
	entity, err := s.Virtual.AttestAtTime(Subject, Issuer, payload, time.Now().Add(time.Minute), true)
	require.NoError(t, err)
	return s.Bundle(t, entity)
}

// Sign signs a file, as cosign sign-blob does.
func (s *Sigstore) Sign(t *testing.T, file []byte) *protobundle.Bundle {
	t.Helper()
	entity, err := s.Virtual.SignAtTime(Subject, Issuer, file, time.Now().Add(time.Minute))
	require.NoError(t, err)
	return s.Bundle(t, entity)
}

// Bundle is what cosign would write.
func (s *Sigstore) Bundle(t *testing.T, entity verify.SignedEntity) *protobundle.Bundle {
	t.Helper()
	of, err := entity.VerificationContent()
	require.NoError(t, err)
	content, err := entity.SignatureContent()
	require.NoError(t, err)
	material := &protobundle.VerificationMaterial{
		Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: of.Certificate().Raw}},
		TimestampVerificationData: &protobundle.TimestampVerificationData{},
	}
	times, err := entity.Timestamps()
	require.NoError(t, err)
	for _, at := range times {
		material.TimestampVerificationData.Rfc3161Timestamps = append(material.TimestampVerificationData.Rfc3161Timestamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: at})
	}
	entries, err := entity.TlogEntries()
	require.NoError(t, err)
	for _, e := range entries {
		entry := e.TransparencyLogEntry()
		if entry.KindVersion == nil {
			s.complete(t, entry)
		}
		material.TlogEntries = append(material.TlogEntries, entry)
	}
	b := &protobundle.Bundle{MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", VerificationMaterial: material}
	if m := content.MessageSignatureContent(); m != nil {
		b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: m.Digest()}, Signature: content.Signature(),
		}}
		return b
	}
	e := content.EnvelopeContent().RawEnvelope()
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	require.NoError(t, err)
	b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: payload, PayloadType: e.PayloadType, Signatures: []*protodsse.Signature{{Sig: content.Signature()}},
	}}
	return b
}

// complete adds to an entry what a log answers, and the entity keeps to itself: the kind, the
// promise and the proof.
func (s *Sigstore) complete(t *testing.T, entry *protorekor.TransparencyLogEntry) {
	t.Helper()
	var body struct{ Kind, APIVersion string }
	require.NoError(t, json.Unmarshal(entry.CanonicalizedBody, &body))
	entry.KindVersion = &protorekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	promise, err := s.Virtual.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.CanonicalizedBody), IntegratedTime: entry.IntegratedTime,
		LogIndex: entry.LogIndex, LogID: hex.EncodeToString(entry.LogId.KeyId),
	})
	require.NoError(t, err)
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	p, err := s.Virtual.GetInclusionProof(entry.CanonicalizedBody)
	require.NoError(t, err)
	sum, err := hex.DecodeString(*p.RootHash)
	require.NoError(t, err)
	entry.InclusionProof = &protorekor.InclusionProof{LogIndex: *p.LogIndex, TreeSize: *p.TreeSize, RootHash: sum, Checkpoint: &protorekor.Checkpoint{Envelope: *p.Checkpoint}}
}

// Text is that of the file with the sigstore bundle.
func Text(t *testing.T, b *protobundle.Bundle) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	require.NoError(t, err)
	return text
}
