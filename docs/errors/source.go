package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// modulePath begins the import path of every package of ours; what follows is
// its folder, in the modules below ci/ too.
const modulePath = "github.com/slipway-sh/slipway"

// faultDir is the package that has the classes.
const faultDir = "fault"

// carriers are the types of errors that have a code, by their folders.
func carriers() map[string]carrier {
	return map[string]carrier{
		faultDir:          {name: "Fault"},
		"ci/origin":       {name: "Refusal"},
		"ci/dev/build/remedy": {name: "Error", class: "preflight"},
	}
}

// carrier is a type of errors that have a code.
type carrier struct {
	name  string
	class string // of all its errors; empty: its field Class says
}

// source is the repository's Go code, as far as fault codes are concerned.
type source struct {
	fsys     fs.FS
	fset     *token.FileSet
	packages map[string]*folder // by path, "." for the root
}

// folder is one package with its tests.
type folder struct {
	path    string
	module  string // folder of its go.mod
	name    string // of the package
	files   []*file
	codes   map[string]string // code by the name of its constant
	makers  map[string]maker  // functions that take a code and make a fault
	skipped map[string]bool   // test functions that may skip themselves
}

// file is one Go file.
type file struct {
	path    string
	dir     string
	test    bool
	syntax  *ast.File
	imports map[string]string // folder by the name under which it is imported
}

// read parses every Go file below fsys that a person wrote.
func read(fsys fs.FS) (*source, error) {
	s := &source{fsys: fsys, fset: token.NewFileSet(), packages: map[string]*folder{}}
	var modules []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.Name() == "go.mod":
			modules = append(modules, path.Dir(name))
		case !d.IsDir() && strings.HasSuffix(name, ".go"):
			return s.add(name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range s.packages {
		for _, m := range modules {
			if (m == "." || p.path == m || strings.HasPrefix(p.path, m+"/")) && len(m) >= len(p.module) {
				p.module = m
			}
		}
		p.declared()
		p.skipped = skipping(p)
	}
	for _, p := range s.packages {
		for _, f := range p.files {
			f.imports = s.importsOf(f.syntax)
		}
	}
	for _, p := range s.packages {
		p.makers = makersOf(p)
	}
	return s, nil
}

func (s *source) add(name string) error {
	text, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(syntax) {
		return nil
	}
	dir := path.Dir(name)
	p := s.packages[dir]
	if p == nil {
		p = &folder{path: dir, codes: map[string]string{}}
		s.packages[dir] = p
	}
	f := &file{path: name, dir: dir, test: strings.HasSuffix(name, "_test.go"), syntax: syntax}
	if !f.test || p.name == "" {
		p.name = syntax.Name.Name
	}
	p.files = append(p.files, f)
	return nil
}

// importsOf are the imports of packages of ours.
func (s *source) importsOf(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range f.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		below, ours := strings.CutPrefix(full, modulePath+"/")
		if err != nil || !ours || s.packages[below] == nil {
			continue
		}
		name := s.packages[below].name
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = below
	}
	return out
}

// isCode matches the whole of a code.
var isCode = regexp.MustCompile(`^[A-Z]{2,5}-\d{3}$`)

// codeOf is the code that an expression holds as a literal.
func codeOf(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil && isCode.MatchString(text)
}

// declared finds the constants that are codes.
func (p *folder) declared() {
	for _, spec := range p.constants() {
		for i, name := range spec.Names {
			if code, ok := codeOf(spec.Values[i]); ok {
				p.codes[name.Name] = code
			}
		}
	}
}

// constants are the package's constants that have values, those of tests left
// out.
func (p *folder) constants() []*ast.ValueSpec {
	var out []*ast.ValueSpec
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, decl := range f.syntax.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				if len(spec.Values) != len(spec.Names) {
					continue
				}
				if spec.Doc == nil && len(group.Specs) == 1 {
					spec.Doc = group.Doc
				}
				out = append(out, spec)
			}
		}
	}
	return out
}

// sorted are the packages by their paths.
func (s *source) sorted() []*folder {
	var out []*folder
	for _, name := range slices.Sorted(maps.Keys(s.packages)) {
		out = append(out, s.packages[name])
	}
	return out
}

// at is the place of a node, for messages.
func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// skipping are the test functions of a package that may skip themselves, by
// their own call or by that of a function that they call.
func skipping(p *folder) map[string]bool {
	calls := map[string][]string{} // what each function calls, by bare name
	for _, f := range p.files {
		if !f.test {
			continue
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch callee := call.Fun.(type) {
				case *ast.Ident:
					calls[fn.Name.Name] = append(calls[fn.Name.Name], callee.Name)
				case *ast.SelectorExpr:
					calls[fn.Name.Name] = append(calls[fn.Name.Name], callee.Sel.Name)
				}
				return true
			})
		}
	}
	out := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for name, callees := range calls {
			skips := slices.ContainsFunc(callees, func(c string) bool {
				return c == "Skip" || c == "Skipf" || c == "SkipNow" || out[c]
			})
			if skips && !out[name] {
				out[name], grown = true, true
			}
		}
	}
	return out
}
