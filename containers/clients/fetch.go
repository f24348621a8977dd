package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

// most is the most that an archive, or a program in it, may have, in bytes.
const most = 512 << 20

// fetch is the program out of a vendor's release, which is compared with its digest first.
func (o Options) fetch(ctx context.Context, name string, r lock.Release) ([]byte, error) {
	f := &fault.Fault{Code: CodeFetch, Class: fault.Preflight, Op: "fetch " + r.URL,
		Fix: "give this machine access to that site, then run the same command again; finished downloads are kept"}
	archive, err := o.get(ctx, r.URL)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err == nil && bundle.SumOf(archive) != r.SHA256 {
		err = fmt.Errorf("its sha256 is %s, the lock says %s", bundle.SumOf(archive), r.SHA256)
		f.Fix = "find out who changed it, or what is between this machine and that site; nothing was written"
	}
	var program []byte
	if err == nil {
		program, err = unpack(archive, r.URL, o.file(name))
	}
	if err != nil {
		f.Err = err
		return nil, f
	}
	return program, nil
}

func (o Options) get(ctx context.Context, url string) ([]byte, error) {
	client := o.Client
	if client == nil {
		client = http.DefaultClient
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // only read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the site answers %s", answer.Status)
	}
	return bounded.Read(answer.Body, most)
}

// unpack is the file of that name in an archive, a .zip or a .tar.gz by its URL.
func unpack(archive []byte, url, file string) ([]byte, error) {
	if strings.HasSuffix(url, ".zip") {
		files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			return nil, err
		}
		for _, f := range files.File {
			if path.Base(f.Name) == file && f.Mode().IsRegular() {
				r, err := f.Open()
				if err != nil {
					return nil, err
				}
				return bounded.Read(r, most)
			}
		}
		return nil, fmt.Errorf("it holds no %s", file)
	}
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it holds no %s", file)
		}
		if err != nil {
			return nil, err
		}
		if path.Base(h.Name) == file && h.Typeflag == tar.TypeReg {
			return bounded.Read(files, most)
		}
	}
}
