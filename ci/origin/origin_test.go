package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// refused fails the test unless err is a refusal with that code and exit code
// which says all of it.
func refused(t *testing.T, err error, code string, exit Class, says ...string) {
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
	refused(t, Nowhere(), "BUN-006", Usage, "--bundle DIR", "--lock slipway.lock.json", "make bundle")
	refused(t, RegistryAlone(), "REG-012", Usage, "--lock FILE")
	refused(t, NoBundle(why), "BUN-001", Preflight, "bundle.json", "the engine's words", "make bundle")
	refused(t, Damaged(Program, why), "BUN-003", Preflight, "bin/slipway", "the engine's words", "make bundle")
	refused(t, NoLock(why), "LCK-003", Usage, "the engine's words", "slipway bundle push")
	refused(t, NotPulled("r.example.com:5000/team/toolchain@sha256:00", why), "REG-009", Preflight,
		"the image toolchain from r.example.com:5000/team: the engine's words", "docker login r.example.com:5000)", "--to r.example.com:5000/team)")
	refused(t, NotVerified("some noise\nerror BUN-003: verify the bundle /bundle: bin/helm has sha256 00…\n  remedy: x\n"), "BUN-003", Preflight, ": verify the bundle: bin/helm has sha256 00…\n")
	refused(t, NotVerified("killed"), "BUN-003", Preflight, "killed")
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
	refused(t, Vouched([]byte(index), ""), "BUN-007", Preflight, "it is "+is+", and nothing says", "make bundle")
	refused(t, Vouched([]byte(index+"\n"), is), "BUN-007", Preflight, "says "+is, "--bundle-digest sha256:…")
}

func TestProgramDigest(t *testing.T) {
	content := sha256.Sum256([]byte("program"))
	named := hex.EncodeToString(content[:])
	twice := sha256.Sum256(content[:])
	got, err := ProgramDigest([]byte(`{"files":[{"path":"bin/helm","sha256":"00"},{"path":"bin/slipway","sha256":"` + named + `"}]}`))
	if want := "sha256:" + hex.EncodeToString(twice[:]); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for index, says := range map[string]string{
		``:             "unexpected end",
		`[]`:           "cannot unmarshal",
		`{"files":[]}`: "does not name bin/slipway",
		`{"files":[{"path":"bin/slipway","sha256":"0g"}]}`: "has no sha256",
		`{"files":[{"path":"bin/slipway","sha256":"00"}]}`: "has no sha256",
	} {
		_, err := ProgramDigest([]byte(index))
		refused(t, err, "BUN-002", Preflight, says)
	}
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
	refused(t, err, "LCK-003", Usage, "invalid character")
	_, err = Image([]byte(`{"images":[]}`), "", "linux/amd64")
	refused(t, err, "REG-010", Usage, "--registry host/path")
	_, err = Image([]byte(lock), "", "linux/arm64")
	refused(t, err, "REG-006", Usage, "linux/arm64", "--to pushed.example.com/slipway")
}
