package acquire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/net/http2"

	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// The codes of this package's faults, besides those of package imageref and registries.CodePlain.
const (
	// CodeAbsent: what is to be added is no reference, or the registry, layout or archive does not
	// have the image, or not for the bundle's platform.
	CodeAbsent fault.Code = "IMG-003"
	// CodeOther: the image has another digest than its reference says, or than the
	// bundle has under this reference.
	CodeOther fault.Code = "IMG-005"
	// CodeSource: the image cannot be read: it is damaged, or nothing that a bundle can
	// hold.
	CodeSource fault.Code = "IMG-006"
	// CodeWrite: the bundle cannot be written.
	CodeWrite fault.Code = "IMG-007"
)

var (
	errReference = errors.New("no reference")
	errAbsent    = errors.New("no such image is there")
	errPlatform  = errors.New("not for this platform")
	errOther     = errors.New("another digest")
	errUnknown   = errors.New("not an image that can be read")
	errWrite     = errors.New("the bundle cannot be written")
)

func (a *adder) fault(r Request, err error) error {
	host := r.source().Host
	f := &fault.Fault{Code: CodeSource, Class: fault.Preflight, Op: fmt.Sprintf("add the image %s from %s", r.Image, r.from()), Err: err,
		Fix: "correct the source, then run the same command again"}
	_, unsent := errors.AsType[*url.Error](err)
	status := 0
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		status = answer.StatusCode
	}
	reason := imageref.RequestReason(err, host, status)
	switch {
	case errors.Is(err, errReference):
		f.Code, f.Class, f.Fix = CodeAbsent, fault.Usage, "give a reference as in a manifest, such as quay.io/team/app:1.0"
	case errors.Is(err, errAbsent):
		f.Code, f.Class, f.Fix = CodeAbsent, fault.Usage, "give a source that has it; to take another image of this one nevertheless, give its name there: "+fault.Quote(r.key())+"="+fault.Quote(r.Path)+":NAME"
	case errors.Is(err, errPlatform):
		f.Code, f.Class, f.Fix = CodeAbsent, fault.Usage, "give a source that has it for "+a.bundle.Platform+": "+fault.Quote(r.Image.String())+"=SOURCE"
	case errors.Is(err, errOther):
		f.Code, f.Class, f.Fix = CodeOther, fault.Usage, "find out who changed it; to take it nevertheless: slipway bundle add "+fault.Quote(a.Dir)+" --force "+fault.Quote(r.text)
		if r.Image.Digest != "" && !strings.Contains(err.Error(), "the bundle has") {
			f.Fix = "give a source that has the image of this digest: an archive of docker save may have another one than the registry"
		}
	case noSpace(err):
		f.Code, f.Fix = CodeWrite, "make room on the disk of "+a.bundle.Dir()+", then run the same command again"
	case errors.Is(err, errWrite):
		f.Code, f.Fix = CodeWrite, "let this user write to "+a.bundle.Dir()+", then run the same command again"
	case errors.Is(err, errUnknown):
	case reason == imageref.Login, reason == imageref.Certificate, reason == imageref.Proxy, reason == imageref.Limit:
		f.Code, f.Fix = fault.Code(reason.Code()), reason.Remedy(imageref.Machine, host)
	case reason == imageref.Absent:
		f.Code, f.Class, f.Fix = CodeAbsent, fault.Usage, "give a reference that it has, or another source: "+fault.Quote(r.Image.String())+"=SOURCE"
	case reason == imageref.Unreachable, status == 0 && !unsent && r.Path == "" && cut(err):
		f.Code, f.Fix = imageref.CodeUnreachable, "run the same command again: what was added stays"
	case status == 0 && registries.WantsPlain(err, host):
		f.Code, f.Class, f.Fix = registries.CodePlain, fault.Usage, "give the registry a TLS certificate, or allow plain HTTP: --plain-http"
	case status == 0 && unsent:
		f.Code, f.Fix = imageref.CodeUnreachable, "see whether it answers: curl -v https://"+host+"/v2/; where there is no network, give the image as a file, an archive of docker save or an OCI layout: slipway bundle add "+fault.Quote(a.Dir)+" "+fault.Quote(r.key())+"=FILE"
	}
	return f
}

// cut reports whether an answer of a registry did not arrive whole.
func cut(err error) bool {
	// Not any net.Error: an error of the disk is one as well.
	_, broken := errors.AsType[*net.OpError](err)
	_, reset := errors.AsType[http2.StreamError](err)
	return broken || reset || errors.Is(err, io.ErrUnexpectedEOF)
}

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
