package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	const lock = `{"location":"pushed.example.com/slipway","bundles":{"linux/amd64":{"toolchain":"sha256:2"}}}`
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
	_, err = Image([]byte(`{"bundles":{}}`), "", "linux/amd64")
	wantRefusal(t, err, "REG-010", Usage, "--registry host/path")
	_, err = Image([]byte(lock), "", "linux/arm64")
	wantRefusal(t, err, "REG-007", Usage, "linux/arm64", "push DIR pushed.example.com/slipway")
}
