package origin

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// wantRefusal fails the test unless err is a refusal with that code and exit code
// which says all of it.
func wantRefusal(t *testing.T, err error, code string, exit Class, says ...string) {
	t.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatalf("no refusal: %v", err)
	}
	if r.Code != code || r.Class != exit {
		t.Errorf("code %s, class %d; want %s and %d", r.Code, r.Class, code, exit)
	}
	if x := r.Extensions(); x["_type"] != "EXEC_ERROR" || x["exitCode"] != int(exit) {
		t.Errorf("extensions %v do not end the CLI with %d", x, exit)
	}
	for _, s := range append(says, code+": "+r.Op+": ", "\n  remedy: ") {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
	if strings.HasSuffix(err.Error(), "remedy: ") {
		t.Errorf("%q has no remedy", err)
	}
}

// No error of this package is without code, remedy and exit code.
func TestRefusals(t *testing.T) {
	why := errors.New("the engine's words")
	wantRefusal(t, Nowhere(), "BUN-006", Usage, "--bundle DIR", "--lock slipway.lock.json", "make bundle")
	wantRefusal(t, RegistryAlone(), "REG-010", Usage, "--lock FILE")
	wantRefusal(t, NoBundle(why), "BUN-001", Preflight, "bundle.json", "the engine's words", "make bundle")
	wantRefusal(t, Damaged(Program, why), "BUN-003", Preflight, "bin/slipway", "the engine's words", "make bundle")
	wantRefusal(t, NoLock(why), "LCK-003", Usage, "the engine's words", "slipway bundle push")
	wantRefusal(t, NotPulled("r.example.com:5000/team/toolchain@sha256:00", why), "REG-009", Preflight,
		"the image toolchain from r.example.com:5000/team: the engine's words", "docker login r.example.com:5000)", "curl -v https://r.example.com:5000/v2/")
	wantRefusal(t, NoBase("r.example.com/golang@sha256:00", why), "REG-009", Preflight, "the engine's words", "--base REF")
	wantRefusal(t, NotPrepared("r.example.com/alpine@sha256:00", "sh: apt-get: not found\n"), "BUN-012", Preflight, "in the image r.example.com/alpine@sha256:00: sh: apt-get: not found\n", "Debian 12 with Go")
	wantRefusal(t, NotBuilt("[3/31] helm: building\nerror BUN-012: build the bundle's helm: exit status 1\ncc: not found\n  remedy: read /a.log, then run: make bundle\nmake: *** Error 1\nall of a.log\n"), "BUN-012", Preflight,
		": build the bundle's helm: exit status 1\ncc: not found\n", "what it printed above")
	wantRefusal(t, NotBuilt("error BUN-014: read the platform release /platforms/0: no platform.yaml\n  remedy: give the directory of a platform release: make bundle PLATFORM=DIR\n"), "BUN-014", Preflight,
		"no platform.yaml\n", "dagger call bundle --platform DIR")
	wantRefusal(t, NotBuilt("error BUN-010: build the bundle: this machine's Debian is trixie\n  remedy: build it on Debian bookworm, then pass it with --bundle\n"), "BUN-010", Preflight,
		"Debian is trixie\n", "--base docker.io/library/golang")
	wantRefusal(t, NotBuilt(strings.Repeat("noise\n", 50)+"make: *** killed\n"), "BUN-012", Preflight, "make: *** killed", "what it printed above")
	wantRefusal(t, NotVerified("some noise\nerror BUN-003: verify the bundle /bundle: bin/helm has sha256 00…\n  remedy: x\n"), "BUN-003", Preflight, ": verify the bundle: bin/helm has sha256 00…\n")
	wantRefusal(t, NotVerified("killed"), "BUN-003", Preflight, "killed")
	if err := NoLock(why); !errors.Is(err, why) {
		t.Errorf("%v hides its cause", err)
	}
}

func TestVouched(t *testing.T) {
	const index, is = "index", "sha256:1bc04b5291c26a46d918139138b992d2de976d6851d0893b0476b85bfbdfc6e6"
	for _, digest := range []string{is, Unverified} {
		if err := Vouched([]byte(index), digest); err != nil {
			t.Errorf("%s: %v", digest, err)
		}
	}
	wantRefusal(t, Vouched([]byte(index), ""), "BUN-007", Preflight, "it is "+is+", and nothing says", "make bundle")
	wantRefusal(t, Vouched([]byte(index+"\n"), is), "BUN-007", Preflight, "says "+is, "--bundle-digest sha256:…")
}

// TestSigned: what package trust of the program signed, see testdata, and what others sign.
func TestSigned(t *testing.T) {
	file := func(name string) []byte {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	index, signature, key := file("bundle.json"), file("bundle.sigstore.json"), file("key.pub.pem")
	if err := Signed(index, signature, key); err != nil {
		t.Error(err)
	}
	wantRefusal(t, Signed(append(index, '\n'), signature, key), "BUN-007", Preflight, "it is the signature of something else", "--bundle-key")
	if err := SignedLock(index, signature, key); err != nil {
		t.Error(err)
	}
	wantRefusal(t, SignedLock(append(index, '\n'), signature, key), "LCK-007", Preflight, "it is the signature of something else", "--lock-signature")
	wantRefusal(t, SignedLock(index, signature, nil), "PKG-004", Usage, "no PUBLIC KEY")
	wantRefusal(t, Unsigned(errors.New("no such file")), "BUN-007", Preflight, "no signature that can be read: no such file")

	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := func(key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	sum := sha256.Sum256(index)
	signed := func(kind, statement, predicate, sha string) []byte {
		payload := fmt.Sprintf(`{"_type":%q,"predicateType":%q,"subject":[{"digest":{"sha256":%q}}]}`, statement, predicate, sha)
		digest := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload))
		sig, err := ecdsa.SignASN1(rand.Reader, ec, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, `{"dsseEnvelope":{"payloadType":%q,"payload":%q,"signatures":[{"sig":"AA=="},{"keyid":"","sig":%q}]}}`,
			kind, base64.StdEncoding.EncodeToString([]byte(payload)), base64.StdEncoding.EncodeToString(sig))
	}
	const kind, statement, predicate = "application/vnd.in-toto+json", "https://in-toto.io/Statement/v0.1", "https://slsa.dev/provenance/v1"
	sha := hex.EncodeToString(sum[:])
	if err := Signed(index, signed(kind, statement, predicate, sha), public(ec.Public())); err != nil {
		t.Errorf("as cosign has it: %v", err)
	}
	for says, text := range map[string][]byte{
		"it is not signed with the key":         signature,
		"its payload is":                        signed("text/plain", statement, predicate, sha),
		`it states "x"`:                         signed(kind, "x", predicate, sha),
		"run-package":                           signed(kind, statement, "https://slipway.sh/run-package/v1", sha),
		"it is the signature of something else": signed(kind, statement, predicate, strings.Repeat("0", 64)),
		"unexpected end":                        nil,
	} {
		wantRefusal(t, Signed(index, text, public(ec.Public())), "BUN-007", Preflight, "it is sha256:"+sha, says)
	}
	for _, wrong := range [][]byte{nil, []byte("key"), public(other.Public()), bytes.ReplaceAll(key, []byte("PUBLIC"), []byte("PRIVATE"))} {
		wantRefusal(t, Signed(index, signature, wrong), "PKG-004", Usage, "--bundle-key key.pub.pem")
	}
}

func TestProgramDigest(t *testing.T) {
	const amd64 = "linux/amd64"
	content := sha256.Sum256([]byte("program"))
	named := hex.EncodeToString(content[:])
	twice := sha256.Sum256(content[:])
	got, err := ProgramDigest([]byte(`{"platform":"linux/amd64","files":[{"path":"bin/helm","sha256":"00"},{"path":"bin/slipway","sha256":"`+named+`"}]}`), amd64)
	if want := "sha256:" + hex.EncodeToString(twice[:]); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for index, says := range map[string]string{
		``:                                      "unexpected end",
		`[]`:                                    "cannot unmarshal",
		`{"platform":"linux/amd64","files":[]}`: "does not name bin/slipway",
		`{"platform":"linux/amd64","files":[{"path":"bin/slipway","sha256":"0g"}]}`: "has no sha256",
		`{"platform":"linux/amd64","files":[{"path":"bin/slipway","sha256":"00"}]}`: "has no sha256",
	} {
		_, err := ProgramDigest([]byte(index), amd64)
		wantRefusal(t, err, "BUN-002", Preflight, says)
	}
	_, err = ProgramDigest([]byte(`{"platform":"linux/arm64","files":[{"path":"bin/slipway","sha256":"`+named+`"}]}`), amd64)
	wantRefusal(t, err, "BUN-004", Preflight, "it is for linux/arm64, the engine runs on linux/amd64", "make bundle ARCH=amd64")
}

func TestImage(t *testing.T) {
	const lock = `{"location":"pushed.example.com/slipway","images":[
		{"name":"node","registry":{"linux/amd64":{"digest":"sha256:1"}}},
		{"name":"toolchain","registry":{"linux/amd64":{"digest":"sha256:2"}}}]}`
	for registry, want := range map[string]string{
		"":                    "pushed.example.com/slipway/toolchain@sha256:2",
		"other.example.com/":  "other.example.com/toolchain@sha256:2",
		"other.example.com/x": "other.example.com/x/toolchain@sha256:2",
	} {
		if got, err := Image([]byte(lock), registry, "linux/amd64"); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	_, err := Image([]byte("tools: []"), "", "linux/amd64")
	wantRefusal(t, err, "LCK-003", Usage, "invalid character")
	_, err = Image([]byte(`{"images":[]}`), "", "linux/amd64")
	wantRefusal(t, err, "REG-010", Usage, "--registry host/path")
	_, err = Image([]byte(lock), "", "linux/arm64")
	wantRefusal(t, err, "REG-007", Usage, "linux/arm64", "push DIR pushed.example.com/slipway")
}
