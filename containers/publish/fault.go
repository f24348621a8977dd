package publish

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

func (p *pusher) fault(image string, err error) error {
	host, _, _ := strings.Cut(p.To, "/")
	f := &fault.Fault{Code: imageref.CodePull, Class: fault.Preflight, Op: "push to " + p.To, Err: err,
		Fix: "fix what the registry reports, then run the same command again: what it has is not uploaded again"}
	if image != "" {
		f.Op = fmt.Sprintf("push the image %s to %s", image, p.To)
	}
	answer, answered := errors.AsType[*transport.Error](err)
	status := 0
	if answered {
		status = answer.StatusCode
	}
	_, network := errors.AsType[net.Error](err)
	reason := imageref.RequestReason(err, host, status)
	switch {
	case errors.Is(err, errPlace):
		f.Code, f.Class, f.Fix = imageref.CodeNowhere, fault.Usage, "give HOST[:PORT]/PATH without scheme and tag, such as registry.example.com/slipway"
	case reason == imageref.Login:
		f.Code, f.Fix = imageref.CodeLogin, "log in with an account that may push to it: docker login "+fault.Quote(host)
	case reason == imageref.Certificate, reason == imageref.Proxy, reason == imageref.Limit:
		f.Code, f.Fix = fault.Code(reason.Code()), reason.Remedy(imageref.Machine, host)
	case !answered && registries.WantsPlain(err, host):
		f.Code, f.Class, f.Fix = registries.CodePlain, fault.Usage, "give the registry a TLS certificate, or allow plain HTTP: --plain-http"
	case !answered && network:
		f.Code, f.Fix = imageref.CodeUnreachable, imageref.Unreachable.Remedy(imageref.Machine, host)
	}
	return f
}
