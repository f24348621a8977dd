package redact

import (
	"regexp"
	"slices"
	"strings"
)

// The forms of secrets that can be recognised without a key in front of them.
var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	urlAccount = regexp.MustCompile(`(://)[^/\s:@]*:[^/\s@]+@`)
	authHeader = regexp.MustCompile(`(?i)\b(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}`)
	signedBy   = regexp.MustCompile(`(?i)\b(sharedkey|aws4-hmac-sha256) +\S+`)
	signature  = regexp.MustCompile(`(?i)\b(sig=)[^&;:\s"',}]+`)
	knownToken = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|\b(AKIA|ASIA)[0-9A-Z]{12,}\b|\bgh[pousr]_[A-Za-z0-9]{20,}`)
)

// keyed matches "password=…" and the like: the key, the separator, and the value,
// which is a word or quoted.
var keyed = regexp.MustCompile(`(?i)([\w.-]*(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|signature|credential)[\w.-]*)` +
	`(\\?["']?\s*[:=]\s*)` +
	`(\\?"[^"]*"|'[^']*'|[^\s,;&"'}\])]+)`)

// Text returns s without anything that looks like a secret: passwords in URLs and after
// the usual keys, private keys in PEM, bearer tokens, signatures of requests, tokens
// and keys in known formats.
func Text(s string) string {
	s = privateKey.ReplaceAllString(s, hidden)
	s = urlAccount.ReplaceAllString(s, "${1}"+hidden+"@")
	s = knownToken.ReplaceAllString(s, hidden)
	// The remaining expressions are slow, and most texts contain none of their words.
	lower := strings.ToLower(s)
	has := func(word string) bool { return strings.Contains(lower, word) }
	if has("bearer") || has("basic") {
		s = authHeader.ReplaceAllString(s, "${1} "+hidden)
	}
	if has("sharedkey") || has("aws4") {
		s = signedBy.ReplaceAllString(s, "${1} "+hidden)
	}
	s = signature.ReplaceAllString(s, "${1}"+hidden)
	if !slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "key", "signature", "credential"}, has) {
		return s
	}
	return keyed.ReplaceAllStringFunc(s, func(found string) string {
		p := keyed.FindStringSubmatch(found)
		if harmless(p[1], p[2], p[3]) {
			return found
		}
		return p[1] + p[2] + hidden
	})
}

// External returns what Plain and Text leave of text from elsewhere: what a tool, a pod or a
// server wrote.
func External(s string) string { return Text(Plain(s)) }

// variable is a password that comes from a variable or a command, in a script:
// PASSWORD=$PASSWORD, PASSWORD=$(cat file).
var variable = regexp.MustCompile(`[\w.-]+\s*[:=]\s*\\?["']?\$(?:\w+|\{\w+(?::?\?[^{}]*|:?-)?\}|\([^()]*\))\\?["']?`)

// LooksSecret reports whether the value of a setting is a secret, or has one in it, as far
// as its path ("auth.adminPassword") and the value itself tell. An empty one is none.
func LooksSecret(path, value string) bool {
	if value == "" {
		return false
	}
	plain := variable.ReplaceAllString(value, "")
	if Text(plain) != plain {
		return true
	}
	key := path[strings.LastIndexByte(path, '.')+1:]
	switch lower := strings.ToLower(key); {
	case strings.HasPrefix(lower, "existing"), strings.HasSuffix(lower, "passwordkey"): // of and in a Secret, in charts
		return false
	}
	text := key + `: "` + strings.ReplaceAll(plain, `"`, "") + `"`
	return Text(text) != text
}

// harmless reports whether the value after a key is not a secret but the name of one,
// or the next word of a sentence, as in "invalid token: expired".
func harmless(key, between, value string) bool {
	key = strings.ToLower(key)
	for _, end := range []string{"name", "namespace", "ref", "class", "file", "path", "type"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	if strings.Contains(between, "=") || strings.HasPrefix(value, `"`) || strings.HasPrefix(value, `'`) || strings.HasPrefix(value, `\`) {
		return false
	}
	for _, word := range []string{"password", "passwd", "pwd", "passphrase"} {
		if strings.Contains(key, word) {
			return false
		}
	}
	return strings.Trim(value, "abcdefghijklmnopqrstuvwxyz.") == ""
}
