package refused

import (
	"errors"
	"net/http"
	"net/url"
)

// OfRequest is why a request to the registry at host, host[:port], failed with err. status is
// that of the answer; 0 is none.
func OfRequest(err error, host string, status int) Reason {
	// A client tries another scheme where the first one failed, and may have got an answer.
	if unsent, ok := errors.AsType[*url.Error](err); ok {
		if r := Read(unsent.Error(), host); r == Certificate || r == Proxy {
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
