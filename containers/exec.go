package containers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
)

// codeLost: the engine lost a step, or the container that holds the lock or publishes the
// cluster's ports: it could not be run, or ended before it could leave a result.
const codeLost fault.Code = "CTR-001"

// Exec is one execution of the runner in the toolchain.
type Exec struct {
	// Args is the command line: "slipway", "step", "infrastructure/terraform".
	Args []string
	// Files are mounted as files with mode 0400, by path. Each is a secret to the engine,
	// as all other arguments are in its telemetry: at most 500 KiB (v0.20.8), UTF-8.
	Files map[string]string
	// Directories are mounted read-only, by path.
	Directories map[string]*dagger.Directory
	// Secrets are mounted as files with mode 0400, by path.
	Secrets map[string]*dagger.Secret
	// Volumes are the names of further cache volumes of the engine, by the path at which they are mounted.
	Volumes map[string]string
	// Result is the path of the file that the runner leaves behind, whether it
	// succeeded or not; empty if it leaves none.
	Result string
	// Cluster is bound under the name "cluster"; nil for none.
	Cluster *dagger.Service
	// NodeDir is the variable that tells the runner where the volume of the cluster's node is
	// mounted; empty: it is not.
	NodeDir string
}

// Outcome is how an execution ended.
type Outcome struct {
	ExitCode int
	Result   []byte // the result file; nil if the runner left none
	NoResult error  // the runner left no result file, though there should be one
	Stderr   string // empty when the exit code is 0 and NoResult is nil
}

// Exec runs e once, uncached. An exit code other than 0 is an Outcome, not an
// error; an error means that the engine could not run the command, that the command was killed
// before it could leave a result, or that the engine does not give the result. Where the command
// has told a fault then, that is the error.
func (d *Deployment) Exec(ctx context.Context, e Exec) (Outcome, error) {
	out, _, err := d.exec(ctx, e)
	return out, err
}

// ExecDirectory is Exec; it also returns the directory that the command left at path.
func (d *Deployment) ExecDirectory(ctx context.Context, e Exec, path string) (Outcome, *dagger.Directory, error) {
	out, done, err := d.exec(ctx, e)
	if err != nil {
		return out, nil, err
	}
	return out, done.Directory(path), nil
}

func (d *Deployment) exec(ctx context.Context, e Exec) (Outcome, *dagger.Container, error) {
	ctr := d.runner(e.Cluster)
	if e.NodeDir != "" {
		ctr = ctr.WithMountedCache(nodeDir, d.data).WithEnvVariable(e.NodeDir, nodeDir)
	}
	for path, name := range e.Volumes {
		ctr = ctr.WithMountedCache(path, d.client.CacheVolume(name))
	}
	for path, dir := range e.Directories {
		ctr = ctr.WithMountedDirectory(path, dir)
	}
	ctr = Access{Files: e.Secrets}.into(ctr)
	ctr = Access{Files: d.secrets(e.Files)}.into(ctr)
	done := fresh(ctr).WithExec(e.Args, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return Outcome{}, nil, context.Cause(ctx)
		}
		return Outcome{}, nil, lost(e, err)
	}
	out := Outcome{ExitCode: code}
	if e.Result != "" {
		out.Result, err = read(ctx, done.File(e.Result))
		if err != nil && ctx.Err() != nil {
			return out, nil, context.Cause(ctx)
		}
		if _, none := errors.AsType[noFile](err); none {
			out.NoResult, err = err, nil
		}
		if err != nil {
			if written := faultOf(ctx, done, code); written != nil {
				return out, nil, written
			}
			return out, nil, lost(e, fmt.Errorf("exit status %d, and the result cannot be read: %w", code, err))
		}
	}
	if code == 0 && out.NoResult == nil {
		return out, done, nil
	}
	if out.Stderr, err = done.Stderr(ctx); err != nil && out.Result == nil {
		return out, nil, lost(e, err)
	}
	return out, done, nil
}

// secrets are texts as secrets of the engine, each under a name that no other has.
func (d *Deployment) secrets(texts map[string]string) map[string]*dagger.Secret {
	out := map[string]*dagger.Secret{}
	for path, text := range texts {
		out[path] = d.client.SetSecret("slipway-"+rand.Text(), text)
	}
	return out
}

// faultOf is the fault that a failed command wrote; nil if there is none.
func faultOf(ctx context.Context, done *dagger.Container, code int) *fault.Fault {
	if code == 0 {
		return nil
	}
	said, err := done.Stderr(ctx)
	if err != nil { // as is known of its result
		return nil
	}
	return ParseFault(said)
}

// noFile is the engine's error for a file that is not in the container.
type noFile struct{ error }

// Export exports a directory to a folder of this machine, and leaves what else is there. If ctx
// has ended before, the error is why.
func (d *Deployment) Export(ctx context.Context, from *dagger.Directory, to string) error {
	_, err := from.Export(ctx, to, dagger.DirectoryExportOpts{Wipe: false})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// read is the content of a file, which it exports to a folder of this machine (that of who owns
// the session, if this process joined it): what the engine returns as a string, such as
// File.Contents, is in its telemetry (v0.20.8, core/telemetry.go). An error is a noFile if
// there is none.
func read(ctx context.Context, file *dagger.File) (text []byte, err error) {
	err = inFolder(func(dir string) error {
		at := filepath.Join(dir, "result")
		if _, err := file.Export(ctx, at); err != nil {
			if strings.Contains(err.Error(), "no such file") {
				err = noFile{err}
			}
			return err
		}
		if text, err = bounded.File(at, bounded.Generated); err != nil {
			return fmt.Errorf("read what the owner of the session has exported: %w", err)
		}
		return nil
	})
	return text, err
}

// lost is the fault of an execution whose file system the engine does not give: it discards that of
// a command that is killed. A session that has ended says so itself.
func lost(e Exec, err error) error {
	if hasEnded(err) {
		return fmt.Errorf("run %v: %w", e.Args, err)
	}
	if x, ok := errors.AsType[*dagger.ExecError](err); ok {
		err = fmt.Errorf("exit status %d: %s", x.ExitCode, tail(x.Stderr, 400))
	}
	fix := "look for memory pressure or an engine restart in the engine's log"
	if _, elsewhere := errors.AsType[*fs.PathError](err); elsewhere {
		fix = "run slipway on the machine where the session on the engine was opened, and as the same user"
	}
	if unread := unreadSecret.FindString(err.Error()); unread != "" {
		fix = "give what the configuration, or a flag, refers to as a secret, readable where this command runs (" + unread + ")"
	}
	return &fault.Fault{
		Code:  codeLost,
		Class: fault.Step,
		Op:    fmt.Sprintf("run %v", e.Args),
		Fix:   fix + ", then run the same command again: finished steps are kept",
		Err:   err,
	}
}

// unreadSecret is what the engine says of a secret whose source its client cannot read.
var unreadSecret = regexp.MustCompile(`failed to read secret file "[^"]*"|secret env var not found: "[^"]*"`)

// Complaint is the error message of a command of Slipway's, without the code; the last line
// of its output if it has none.
func Complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		if coded, ok := strings.CutPrefix(line, "error "); ok {
			if _, text, ok := strings.Cut(coded, ": "); ok {
				return strings.TrimSpace(text)
			}
		}
	}
	stderr = strings.TrimSpace(stderr)
	return stderr[strings.LastIndexByte(stderr, '\n')+1:]
}

// printedDir is where a command leaves what it printed, in its container, and aside runs it so.
const (
	printedDir = "/slipway/printed"
	aside      = `mkdir -p ` + printedDir + ` && { "$@" >` + printedDir + `/out 2>` + printedDir + `/err; echo $? >` + printedDir + `/code; }`
)

// Command runs args in ctr, which has a shell, and returns the exit code, once it has written
// what they printed to out and errw. It comes as files: what a command prints to the engine is
// in its telemetry, and this may be a secret that somebody looks up.
func Command(ctx context.Context, ctr *dagger.Container, args []string, out, errw io.Writer) (code int, err error) {
	done, err := ctr.WithExec(append([]string{"sh", "-c", aside, "sh"}, args...)).Sync(ctx)
	if err != nil {
		return 0, err
	}
	err = inFolder(func(dir string) error {
		if _, err := done.Directory(printedDir).Export(ctx, dir); err != nil {
			return err
		}
		text, err := bounded.File(filepath.Join(dir, "code"), bounded.Written)
		if err == nil {
			code, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		if err != nil {
			return fmt.Errorf("read how the command ended: %w", err)
		}
		for _, to := range []struct {
			file string
			w    io.Writer
		}{{"out", out}, {"err", errw}} {
			f, err := os.Open(filepath.Join(dir, to.file))
			if err != nil {
				return fmt.Errorf("read what the command printed: %w", err)
			}
			_, err = io.Copy(to.w, f)
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	return code, err
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

// folderLimit is the age from which nothing uses a folder of inFolder.
const folderLimit = 24 * time.Hour

const folderPrefix = "slipway-result-"

// inFolder calls do with a folder of this machine for what the engine exports, which may be secret. Call
// it once the export has nothing to wait for: a program that is killed leaves its folder behind. Those
// that killed programs have left are removed.
func inFolder(do func(dir string) error) (err error) {
	sweepFolders()
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return fmt.Errorf("make a folder for a result: %w", err)
	}
	defer func() {
		if left := os.RemoveAll(dir); left != nil {
			err = errors.Join(err, fmt.Errorf("remove a result from this machine: %w", left))
		}
	}()
	return do(dir)
}

// sweepFolders removes what it may of the folders that are left.
func sweepFolders() {
	entries, _ := os.ReadDir(os.TempDir()) // none, if that cannot be read
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name(), folderPrefix)
		if info, err := e.Info(); ours && err == nil && info.IsDir() && time.Since(info.ModTime()) > folderLimit {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), e.Name())) // another user's stays
		}
	}
}
