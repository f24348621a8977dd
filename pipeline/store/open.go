package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/slipway-sh/slipway/fault"
)

// Opener opens the buckets of one kind and understands their errors.
type Opener interface {
	// OpenBucketURL opens the bucket that u names. It need not connect to it.
	blob.BucketURLOpener
	// Kind classifies an error of such a bucket.
	Kind(err error) Kind
	// Credentials returns the environment variables that may hold credentials for
	// such a bucket.
	Credentials() []string
}

// Options configures Open.
type Options struct {
	// Openers are the kinds of buckets that can be opened, by the scheme of
	// their URLs. The schemes file and mem are always supported.
	Openers map[string]Opener
}

// CheckURL checks that a URL names a bucket, not a directory, that can be opened, and
// returns the variables that may hold the credentials for it. It does not open the
// bucket. The error is a fault of class Usage.
func CheckURL(rawURL string, opts Options) (credentials []string, err error) {
	u, _, err := parse(rawURL)
	if err != nil {
		return nil, badURL(rawURL, opts, err)
	}
	opener, err := opts.bucket(u)
	if err != nil {
		return nil, badURL(rawURL, opts, err)
	}
	return opener.Credentials(), nil
}

// bucket returns the opener for the bucket that u names.
func (o Options) bucket(u *url.URL) (Opener, error) {
	opener, ok := o.Openers[u.Scheme]
	switch {
	case !ok:
		return nil, fmt.Errorf("there are no buckets of kind %q", u.Scheme)
	case u.Host == "" || strings.Trim(u.Path, "/") != "":
		return nil, fmt.Errorf("want %s://bucket", u.Scheme)
	}
	return opener, nil
}

// Below returns a bucket's URL with all keys below name.
func Below(rawURL, name string) (string, error) {
	u, prefix, err := parse(rawURL)
	if err == nil {
		err = checkKey(prefix + name)
	}
	if err != nil {
		return "", badURL(rawURL, Options{}, err)
	}
	q := u.Query()
	q.Set("prefix", prefix+name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Open opens the store that a URL names:
//
//	file:///directory                   created if it does not exist
//	mem://                              a new one, for tests
//	s3://bucket?region=…&prefix=a/b     and others of opts.Openers
//
// The parameter prefix is prepended to all keys. Open does not check whether a bucket
// can be reached; Check does. If the URL is wrong the error is a fault of class Usage.
func Open(ctx context.Context, rawURL string, opts Options) (*Store, error) {
	u, prefix, err := parse(rawURL)
	if err != nil {
		return nil, badURL(rawURL, opts, err)
	}
	s := &Store{prefix: prefix, limit: operationLimit, location: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")}
	switch u.Scheme {
	case "file":
		err = s.openDirectory(u, opts)
	case "mem":
		s.local = true
		s.b = &bucket{b: memblob.OpenBucket(nil), kind: memKind}
	default:
		opener, bad := opts.bucket(u)
		if bad != nil {
			return nil, badURL(rawURL, opts, bad)
		}
		var b *blob.Bucket
		if b, err = opener.OpenBucketURL(ctx, u); err == nil {
			s.b = &bucket{b: b, kind: opener.Kind}
		} else if opener.Kind(err) != Refused {
			return nil, badURL(rawURL, opts, err)
		} else {
			err = &kindError{Refused, err}
		}
	}
	if s.prefix != "" {
		s.location += "/" + strings.TrimSuffix(s.prefix, "/")
	}
	if err != nil {
		if _, coded := errors.AsType[*fault.Fault](err); coded {
			return nil, err
		}
		return nil, Preflight(s.fail("open "+s.location, err))
	}
	return s, nil
}

// parse parses a URL and separates its prefix.
func parse(raw string) (*url.URL, string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		inner, _ := errors.AsType[*url.Error](err)
		return nil, "", inner.Err // without the URL
	}
	if u.User != nil {
		return nil, "", errors.New("credentials do not belong in it: set the variables of the environment that the provider documents")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "", err
	}
	for name, values := range q {
		if len(values) != 1 {
			return nil, "", fmt.Errorf("parameter %s is given twice", name)
		}
	}
	prefix := strings.Trim(q.Get("prefix"), "/")
	if prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, "", err
		}
		prefix += "/"
	}
	q.Del("prefix")
	u.RawQuery = q.Encode()
	return u, prefix, nil
}

func (s *Store) openDirectory(u *url.URL, opts Options) error {
	dir := filepath.FromSlash(u.Path)
	if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(dir) {
		return badURL(u.String(), opts, errors.New("want file:///directory"))
	}
	s.local = true
	b, err := openDirectory(dir)
	s.b = b
	return err
}

func badURL(raw string, opts Options, err error) error {
	schemes := slices.Sorted(maps.Keys(opts.Openers))
	fix := "give the store as file:///directory"
	if len(schemes) > 0 {
		fix += " or " + strings.Join(schemes, "://, ") + "://bucket?prefix=…"
	}
	// Only the scheme is shown, as the rest may contain a credential.
	scheme, _, _ := strings.Cut(raw, ":")
	return &fault.Fault{Code: CodeURL, Class: fault.Usage, Op: fmt.Sprintf("understand the store's URL (%.20s:…)", scheme),
		Err: errors.New(clean(err.Error())), Fix: fix + "; docs/state.md lists the parameters"}
}
