package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// The codes of faults of a store.
const (
	// CodeUnreachable: the store of a deployment's state does not respond, or
	// responds with an error; the error names the operation.
	CodeUnreachable fault.Code = "STO-001"
	// CodeRefused: the store rejects the credentials, there are none, or they do
	// not permit the operation.
	CodeRefused fault.Code = "STO-002"
	// CodeDamaged: the store holds something that no store writes (a link or a special
	// file, a file in place of a directory, a value of more than 64 MiB), or a record, a
	// secret or a Terraform state that was altered or cannot be read.
	CodeDamaged fault.Code = "STO-003"
	// CodeURL: the URL of the store cannot be understood, or holds a credential.
	CodeURL fault.Code = "STO-004"
	// CodeNoBucket: the bucket or container of the store does not exist.
	CodeNoBucket fault.Code = "STO-005"
	// CodeFull: the store's directory cannot be written to because its disk is
	// full or read-only.
	CodeFull fault.Code = "STO-006"
)

var (
	errNotFile  = errors.New("it is not a regular file")
	errNoRecord = errors.New("it cannot be read")
)

// Kind classifies errors of buckets.
type Kind int

// The kinds of errors.
const (
	Other    Kind = iota // unreachable, or anything else
	Absent               // the bucket exists, but not the object
	Exists               // the object exists already
	Busy                 // somebody is writing the same object
	Refused              // the credentials are missing, wrong, or insufficient
	NoBucket             // the bucket does not exist
)

// kindError is an error of a bucket with its kind.
type kindError struct {
	kind Kind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

// fail returns the fault for err. Its cause is text from which credentials have been
// removed, as SDKs may include them in errors.
func (s *Store) fail(op string, err error) error {
	f := &fault.Fault{Code: CodeUnreachable, Class: fault.Step, Op: op, Err: errors.New(clean(err.Error())),
		Fix: "check that this machine can reach " + s.location + ", then run the same command again"}
	k, _ := errors.AsType[*kindError](err)
	switch {
	case errors.Is(err, bounded.ErrTooLarge), errors.Is(err, errNotFile), errors.Is(err, errNoRecord), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		f.Code, f.Fix = CodeDamaged, "find out what put it there and move it away; then run the same command again"
	case k != nil && k.kind == Refused, errors.Is(err, fs.ErrPermission):
		f.Code, f.Fix = CodeRefused, "give this machine credentials that may list, read, write and delete in "+s.location
	case k != nil && k.kind == NoBucket:
		f.Code, f.Fix = CodeNoBucket, "make "+s.location+", or correct the store's URL"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS):
		f.Code, f.Fix = CodeFull, "free space in "+s.location+" or make it writable, then run the same command again"
	case s.local:
		f.Fix = "check the directory " + s.location + " and its disk, then run the same command again"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errSlow):
		f.Class = fault.Timeout
	}
	return f
}

// Damaged returns the fault for a value that was read under a key and is not what is written there; err
// says why.
func (s *Store) Damaged(key string, err error) error {
	return s.fail(fmt.Sprintf("read %s in %s", key, s.location), fmt.Errorf("%w: %w", errNoRecord, err))
}

// Preflight turns a fault of a store into one of class Preflight, for callers that have
// not changed anything yet. It returns other errors unchanged.
func Preflight(err error) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || f.Class == fault.Usage || !strings.HasPrefix(string(f.Code), "STO-") {
		return err
	}
	c := *f
	c.Class = fault.Preflight
	return &c
}

var userInfo = regexp.MustCompile(`://[^/\s@"']+@`)

// SecretVariables returns the environment variables from which the SDKs read secrets.
func SecretVariables() []string {
	return []string{
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
		"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING", "AZURE_CLIENT_SECRET",
	}
}

// clean removes credentials from the text of an error.
func clean(text string) string {
	for _, name := range SecretVariables() {
		if v := os.Getenv(name); len(v) >= 4 {
			text = strings.ReplaceAll(text, v, "***")
		}
	}
	return redact.External(userInfo.ReplaceAllString(text, "://***@"))
}
