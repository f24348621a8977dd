package gitserver_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// forge is the part of Gitea's API (1.27.3) that reads and writes the repository slipway/platform.
type forge struct {
	t    *testing.T
	bare string
	// before, if set, runs before a commit is made, as somebody else's push does.
	before func()
}

// git runs git in the repository and returns what it prints.
func (f *forge) git(in []byte, args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", args...)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_INDEX_FILE="+f.bare+"/slipway")
	if args[0] != "init" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+f.bare)
	}
	out, err := cmd.Output()
	if err != nil {
		f.t.Logf("git %v: %v", args, err)
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, known := strings.CutPrefix(r.URL.Path, "/api/v1/repos/slipway/platform")
	main := f.git(nil, "rev-parse", "--verify", "-q", "refs/heads/main")
	switch commit, tree := strings.CutPrefix(path, "/git/trees/"); {
	case known && path == "":
		_, _ = w.Write([]byte("{}"))
	case known && path == "/branches/main" && main != "":
		f.answer(w, map[string]any{"commit": map[string]any{"id": main}})
	case known && tree:
		f.tree(w, commit, r.URL.Query().Get("page"))
	case known && path == "/contents" && r.Method == http.MethodPost:
		f.contents(w, r)
	default:
		http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
	}
}

func (f *forge) answer(w http.ResponseWriter, body any) { _ = json.NewEncoder(w).Encode(body) }

// tree lists a commit, 1000 entries a page.
func (f *forge) tree(w http.ResponseWriter, commit, page string) {
	const perPage = 1000
	lines := strings.Split(f.git(nil, "ls-tree", "-r", "-t", commit), "\n")
	n, _ := strconv.Atoi(page)
	end := min(n*perPage, len(lines))
	var entries []map[string]any
	for _, line := range lines[(n-1)*perPage : end] {
		meta, path, found := strings.Cut(line, "\t")
		if part := strings.Fields(meta); found {
			entries = append(entries, map[string]any{"path": path, "mode": part[0], "type": part[1], "sha": part[2]})
		}
	}
	f.answer(w, map[string]any{"tree": entries, "truncated": end < len(lines), "page": n, "total_count": len(lines)})
}

// contents adds a commit to the branch.
func (f *forge) contents(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Message string
		Author  struct{ Name, Email string }
		Files   []struct {
			Operation, Path, SHA string
			Content              []byte
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if f.before != nil {
		f.before()
	}
	parent := f.git(nil, "rev-parse", "--verify", "-q", "refs/heads/main")
	has := map[string]string{} // mode and hash by path
	f.git(nil, "read-tree", "--empty")
	if parent != "" {
		f.git(nil, "read-tree", parent)
		for line := range strings.Lines(f.git(nil, "ls-tree", "-r", parent)) {
			meta, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			part := strings.Fields(meta)
			has[path] = part[0] + " " + part[2]
		}
	}
	for _, c := range in.Files {
		refused := c.Operation == "update" && has[c.Path] != "100644 "+c.SHA || c.Operation == "delete" && !strings.HasSuffix(has[c.Path], " "+c.SHA)
		for path := range has {
			refused = refused || c.Operation == "create" && (path == c.Path || strings.HasPrefix(path, c.Path+"/") || strings.HasPrefix(c.Path, path+"/"))
		}
		switch {
		case refused:
			http.Error(w, `{"message": "`+c.Operation+" "+c.Path+`"}`, http.StatusUnprocessableEntity)
			return
		case c.Operation == "delete":
			f.git([]byte("0 "+strings.Repeat("0", 40)+"\t"+c.Path+"\n"), "update-index", "--index-info")
		default:
			f.git(nil, "update-index", "--add", "--cacheinfo", "100644,"+f.git(c.Content, "hash-object", "-w", "--stdin")+","+c.Path)
		}
	}
	args := []string{"-c", "user.name=" + in.Author.Name, "-c", "user.email=" + in.Author.Email, "commit-tree", "-m", in.Message}
	var parents []map[string]string
	if parent != "" {
		args, parents = append(args, "-p", parent), append(parents, map[string]string{"sha": parent})
	}
	made := f.git(nil, append(args, f.git(nil, "write-tree"))...)
	f.git(nil, "update-ref", "refs/heads/main", made)
	w.WriteHeader(http.StatusCreated)
	f.answer(w, map[string]any{"commit": map[string]any{"sha": made, "parents": parents}})
}
