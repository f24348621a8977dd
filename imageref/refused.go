package imageref

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// The codes of what a registry, or what is between, refuses.
const (
	// CodeLogin: the registry wants a login, or another account.
	CodeLogin = "REG-001"
	// CodeUnreachable: the registry does not answer, or not whole, or says that it cannot now.
	CodeUnreachable = "REG-002"
	// CodeNoImage: the registry, or the lock, does not have the image.
	CodeNoImage = "REG-007"
	// CodeOtherImage: what the registry gives has another digest than was asked for.
	CodeOtherImage = "REG-008"
	// CodePull: an image cannot be taken from the registry, or pushed to it, for another reason.
	CodePull = "REG-009"
	// CodeNowhere: the address of the registry, or the lock that says what is in it, was not
	// given, or cannot be used.
	CodeNowhere = "REG-010"
	// CodeCertificate: the registry's certificate is not trusted.
	CodeCertificate = "REG-013"
	// CodeLimit: the registry limits how often it is asked.
	CodeLimit = "REG-014"
	// CodeProxy: a proxy between does not let the request through.
	CodeProxy = "REG-015"
)

// Reason is why a registry gave no image, or took none. The zero value is that it is not known.
type Reason int

// The reasons.
const (
	Unknown     Reason = iota
	Login              // it wants a login, or another one
	Certificate        // its certificate is not trusted where the image was asked for
	Limit              // it limits how often it is asked
	Proxy              // a proxy between does not let the request through
	Absent             // it does not have the image
	Other              // what it gives is another image
	Unreachable        // it does not answer, or cannot now
	PlainHTTP          // it has no TLS
)

// What decides, in what programs say: the clients of containerd and of go-containerregistry, the
// kubelet that repeats them, and net/http tell it in words only. A test holds the words as each of them
// has them. A status stands behind a colon or "code", so that no digits of a name count.
var (
	proxied = regexp.MustCompile(`\bproxyconnect\b|(?i:\bproxy authentication required\b)|(?:: |\bcode )407\b` +
		// The answer of a proxy to CONNECT: net/http has its words, and not its number.
		`|\b(?:Head|Get|Post|Put|Patch) "": (?:Forbidden|Bad Gateway|Service Unavailable|Gateway Time-?out|Method Not Allowed)\b`)
	untrusted   = regexp.MustCompile(`\bx509: |\bfailed to verify certificate\b|\bcertificate is not trusted\b`)
	limited     = regexp.MustCompile(`(?i:\btoo ?many ?requests\b)|(?:: |\bcode )429\b`)
	other       = regexp.MustCompile(`\b(?:unexpected digest|unexpected commit digest|failed precondition|failed size validation)\b`)
	plain       = regexp.MustCompile(`\bserver gave HTTP response to HTTPS client\b`)
	wantsLogin  = regexp.MustCompile(`(?i:\bunauthorized\b)|\b403 Forbidden\b|\binsufficient_scope\b|\bauthorization failed\b|\bno basic auth credentials\b|\bDENIED\b|\bdenied: |\b(?:access|is) denied\b|\bgetting credentials\b|(?:: |\bcode )40[13]\b`)
	unresolved  = regexp.MustCompile(`\bno such host\b`)
	absent      = regexp.MustCompile(`(?i:\bnot found\b)|\bNotFound\b|(?i:\b(?:manifest|name)[ _]unknown\b)`)
	unreachable = regexp.MustCompile(`\b(?:connection refused|server misbehaving|i/o timeout|TLS handshake timeout|no route to host|network is unreachable|deadline exceeded|connection reset|EOF)\b|(?:: |\bcode )50[0234]\b`)
	quoted      = regexp.MustCompile(`"[^"]*"|https?://[^\s"]*[^\s":]|sha256:[0-9a-f]+`)
)

// ReadReason is the reason that a text tells. names are what else than URLs, digests and what is in
// quotes may have any words in it, such as the image's complete reference.
func ReadReason(text string, names ...string) Reason {
	for _, name := range names {
		if name != "" {
			text = strings.ReplaceAll(text, name, "")
		}
	}
	text = quoted.ReplaceAllString(text, `""`)
	for _, row := range []struct {
		words  *regexp.Regexp
		reason Reason
	}{ // the more telling before what may stand beside it
		{proxied, Proxy}, {untrusted, Certificate}, {limited, Limit}, {other, Other}, {plain, PlainHTTP}, {wantsLogin, Login},
		{unresolved, Unreachable}, {absent, Absent}, {unreachable, Unreachable},
	} {
		if row.words.MatchString(text) {
			return row.reason
		}
	}
	return Unknown
}

// Code is the code of an image that could not be taken for this reason.
func (r Reason) Code() string {
	return cmp.Or(map[Reason]string{
		Login: CodeLogin, Certificate: CodeCertificate, Limit: CodeLimit, Proxy: CodeProxy,
		Absent: CodeNoImage, Other: CodeOtherImage, Unreachable: CodeUnreachable,
	}[r], CodePull)
}

// Asker is who asked the registry.
type Asker int

// The askers.
const (
	Machine Asker = iota // this one, as the user
	Engine               // the Dagger engine
)

// Remedy is what to do where by could not take an image from a registry, host[:port][/path].
func (r Reason) Remedy(by Asker, registry string) string {
	host, _, _ := strings.Cut(registry, "/")
	switch r {
	case Login:
		return "log in with an account that may pull from it: docker login " + host
	case Certificate:
		if by == Machine {
			return "see who signed it (curl -v https://" + host + "/v2/), and let this machine trust them: on Debian, their certificate as /usr/local/share/ca-certificates/NAME.crt, then update-ca-certificates; SSL_CERT_FILE=FILE before the command, on Linux, is for this once"
		}
		return "see who signed it (curl -v https://" + host + "/v2/), and let the engine trust them: their certificate as /usr/local/share/ca-certificates/NAME.crt, then make engine-stop engine; where Docker runs the engine: as ~/.config/dagger/ca-certificates/NAME.crt (on macOS in ~/Library/Application Support), then make engine-stop engine"
	case Limit:
		return "run the same command again later, or log in with an account that may pull more: docker login " + host
	case Proxy:
		if by == Machine {
			return "give the proxy's user and password in HTTPS_PROXY (http://USER:PASSWORD@PROXY:PORT), let it pass requests for " + host + ", or ask " + host + " without it: NO_PROXY=" + host
		}
		return "let the proxy pass requests for " + host + ", or start the engine with another HTTPS_PROXY or NO_PROXY=" + host + " in its environment; make engine starts one without a proxy"
	case Absent, Other:
		return "push the bundle again and use the lock that this writes: slipway bundle push DIR " + registry
	case Unreachable:
		where := "where the engine runs"
		if by == Machine {
			where = "from here"
		}
		return "see whether it answers " + where + ": curl -v https://" + host + "/v2/"
	case PlainHTTP:
		return fmt.Sprintf("give the registry a TLS certificate, or allow plain HTTP in the engine's engine.toml: [registry.%q] http = true", host)
	}
	return "fix what the registry reports, then run the same command again"
}

// RequestReason is why a request to the registry at host, host[:port], failed with err. status is
// the status of the answer; 0: there is none.
func RequestReason(err error, host string, status int) Reason {
	// A client tries another scheme where the first one failed, and may have got an answer.
	if unsent, ok := errors.AsType[*url.Error](err); ok {
		if r := ReadReason(unsent.Error(), host); r == Certificate || r == Proxy {
			return r
		}
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Login
	case status == http.StatusNotFound:
		return Absent
	case status == http.StatusProxyAuthRequired:
		return Proxy
	case status == http.StatusTooManyRequests:
		return Limit
	case status >= http.StatusInternalServerError:
		return Unreachable
	}
	return Unknown
}
