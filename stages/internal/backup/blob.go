package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// chunkBytes is how large the pieces of a blob are; the last one may be smaller.
const chunkBytes = 4 << 20

// Writer stores what is written to it in pieces below a key. It is not complete before
// Close.
type Writer struct {
	ctx  context.Context //nolint:containedctx // io.Writer has none
	repo *Repository
	key  string
	buf  bytes.Buffer
	sum  hash.Hash
	blob contract.Blob
}

// Writer returns one for a key. What is stored there already is replaced.
func (r *Repository) Writer(ctx context.Context, key string) *Writer {
	return &Writer{ctx: ctx, repo: r, key: key, sum: sha256.New()}
}

// Bytes are how many were written so far.
func (w *Writer) Bytes() int64 { return w.blob.Bytes + int64(w.buf.Len()) }

func (w *Writer) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		part := p[:min(len(p), chunkBytes-w.buf.Len())]
		w.buf.Write(part)
		n, p = n+len(part), p[len(part):]
		if w.buf.Len() == chunkBytes {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (w *Writer) flush() error {
	data := w.buf.Bytes()
	sum := sha256.Sum256(data)
	if err := w.repo.put(w.ctx, chunkKey(w.key, len(w.blob.Chunks)), data); err != nil {
		return err
	}
	w.sum.Write(data)
	w.blob.Bytes += int64(len(data))
	w.blob.Chunks = append(w.blob.Chunks, hex.EncodeToString(sum[:]))
	w.buf.Reset()
	return nil
}

// Close stores the rest and returns what says how to read it.
func (w *Writer) Close() (contract.Blob, error) {
	if w.buf.Len() > 0 {
		if err := w.flush(); err != nil {
			return w.blob, err
		}
	}
	w.blob.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	return w.blob, nil
}

// Reader reads a blob that was stored below a key. It fails with CodeDamaged where a piece
// is missing or another one.
func (r *Repository) Reader(ctx context.Context, key string, b contract.Blob) io.Reader {
	return &reader{ctx: ctx, repo: r, key: key, blob: b, sum: sha256.New()}
}

type reader struct {
	ctx  context.Context //nolint:containedctx // io.Reader has none
	repo *Repository
	key  string
	blob contract.Blob
	next int
	rest []byte
	sum  hash.Hash
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next == len(r.blob.Chunks) {
			if got := hex.EncodeToString(r.sum.Sum(nil)); got != r.blob.SHA256 {
				return 0, damaged(r.key, fmt.Errorf("its sha256 is %s, not %s", got, r.blob.SHA256))
			}
			return 0, io.EOF
		}
		key := chunkKey(r.key, r.next)
		data, err := r.repo.get(r.ctx, key)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, damaged(key, errors.New("it is not there"))
		} else if err != nil {
			return 0, err
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != r.blob.Chunks[r.next] {
			return 0, damaged(key, fmt.Errorf("its sha256 is %s, not %s", got, r.blob.Chunks[r.next]))
		}
		r.sum.Write(data)
		r.rest, r.next = data, r.next+1
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func chunkKey(key string, n int) string { return fmt.Sprintf("%s/%06d", key, n) }

func damaged(key string, err error) error {
	return &fault.Fault{
		Code: CodeDamaged, Class: fault.Step, Op: "read " + key + " of the deployment's state", Err: err,
		Fix: "use another backup; slipway backups lists them",
	}
}
