package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// use is one place in the code where a code is named.
type use struct {
	code  string
	node  ast.Node
	kind  kind
	class string // of the fault; empty where it cannot be told
	idle  bool   // in a test, it shows nothing: the fault is made right here, or must not be there

	function string // the function declaration around it
}

// kind is what a use does with the code.
type kind int

const (
	compares kind = iota // looks whether an error has it
	raises               // makes a fault with it
	says                 // puts it into a text, where no fault can go
)

// maker is a function that takes a code and makes a fault with it.
type maker struct {
	argument int
	class    string // empty where it cannot be told
}

// uses are the places in a file that name a code, by its constant or, in tests,
// as a literal.
func (s *source) uses(p *folder, f *file) []use {
	var out []use
	ast.PreorderStack(f.syntax, nil, func(n ast.Node, stack []ast.Node) bool {
		code, ok := s.resolve(p, f, n, stack)
		if !ok {
			return true
		}
		u := p.judge(f, n, stack)
		u.code, u.node = code, n
		u.idle = u.idle || denied(stack)
		if fn := enclosing(stack); fn != nil {
			u.function = fn.Name.Name
		}
		out = append(out, u)
		return false
	})
	return out
}

// denied tells whether a place is in the arguments of a call such as
// require.NotErrorIs.
func denied(stack []ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		return ok && strings.HasPrefix(field(call.Fun), "Not")
	})
}

// resolve is the code that a node stands for.
func (s *source) resolve(p *folder, f *file, n ast.Node, stack []ast.Node) (string, bool) {
	if len(stack) == 0 {
		return "", false
	}
	switch n := n.(type) {
	case *ast.BasicLit:
		code, ok := codeOf(n)
		return code, ok && f.test
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		if !ok || s.packages[f.imports[x.Name]] == nil {
			return "", false
		}
		code, ok := s.packages[f.imports[x.Name]].codes[n.Sel.Name]
		return code, ok
	case *ast.Ident:
		switch above := stack[len(stack)-1].(type) {
		case *ast.SelectorExpr:
			if above.Sel == n {
				return "", false
			}
		case *ast.KeyValueExpr:
			if above.Key == n {
				return "", false
			}
		case *ast.ValueSpec:
			for _, name := range above.Names {
				if name == n {
					return "", false
				}
			}
		}
		code, ok := p.codes[n.Name]
		return code, ok
	}
	return "", false
}

// judge tells what is done with a code at a place.
func (p *folder) judge(f *file, n ast.Node, stack []ast.Node) use {
	above := stack[len(stack)-1]
	switch above := above.(type) {
	case *ast.KeyValueExpr:
		lit, ok := stack[len(stack)-2].(*ast.CompositeLit)
		if !ok || !isFault(f, lit) {
			break
		}
		if len(lit.Elts) == 1 {
			return use{kind: compares} // the target of errors.Is
		}
		class := classOf(f, lit)
		if changes(enclosing(stack)) {
			class = "" // what follows may give it another one
		}
		return use{kind: raises, class: class, idle: true}
	case *ast.AssignStmt:
		class := ""
		for i, left := range above.Lhs {
			if field(left) == "Class" && i < len(above.Rhs) {
				class = className(f, above.Rhs[i])
			}
		}
		return use{kind: raises, class: class}
	case *ast.CallExpr:
		for i, arg := range above.Args {
			if arg != n {
				continue
			}
			callee, ok := above.Fun.(*ast.Ident)
			if m, known := p.makers[nameOf(callee)]; ok && known && m.argument == i {
				return use{kind: raises, class: m.class, idle: true}
			}
		}
		return use{kind: raises}
	case *ast.BinaryExpr:
		if above.Op == token.ADD {
			return use{kind: says}
		}
		return use{kind: compares}
	case *ast.CaseClause:
		return use{kind: compares}
	}
	return use{kind: raises}
}

// makersOf are the functions of a package with a parameter that becomes the code
// of the one fault that they make.
func makersOf(p *folder) map[string]maker {
	out := map[string]maker{}
	for _, f := range p.files {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || f.test || fn.Recv != nil || fn.Body == nil {
				continue
			}
			parameters := map[string]int{}
			for _, list := range fn.Type.Params.List {
				for _, name := range list.Names {
					parameters[name.Name] = len(parameters)
				}
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok || !isFault(f, lit) {
					return true
				}
				code, _ := element(lit, "Code").(*ast.Ident)
				if i, ok := parameters[nameOf(code)]; ok {
					m := maker{argument: i, class: classOf(f, lit)}
					if changes(fn) {
						m.class = ""
					}
					out[fn.Name.Name] = m
				}
				return true
			})
		}
	}
	return out
}

// isFault tells whether a literal is an error that has a code.
func isFault(f *file, lit *ast.CompositeLit) bool {
	dir, name := f.named(lit.Type)
	c, ok := carriers()[dir]
	return ok && c.name == name
}

// classOf is the class that a literal gives its error; empty where it cannot be
// told.
func classOf(f *file, lit *ast.CompositeLit) string {
	dir, _ := f.named(lit.Type)
	if class := carriers()[dir].class; class != "" {
		return class
	}
	return className(f, element(lit, "Class"))
}

// className is "usage" for fault.Usage.
func className(f *file, e ast.Expr) string {
	dir, name := f.named(e)
	if _, ok := carriers()[dir]; !ok || !ast.IsExported(name) {
		return ""
	}
	return strings.ToLower(name)
}

// named is what a name stands for: the folder of a package of ours, and the name
// there; empty for all else.
func (f *file) named(e ast.Expr) (dir, name string) {
	switch e := e.(type) {
	case *ast.Ident:
		return f.dir, e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && f.imports[x.Name] != "" {
			return f.imports[x.Name], e.Sel.Name
		}
	}
	return "", ""
}

// element is the value of a field in a literal; nil when it has none.
func element(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

// changes tells whether a function sets the code or the class of a fault that is
// made already.
func changes(fn *ast.FuncDecl) bool {
	found := false
	if fn == nil {
		return false
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		if set, ok := n.(*ast.AssignStmt); ok {
			for _, left := range set.Lhs {
				found = found || field(left) == "Code" || field(left) == "Class"
			}
		}
		return !found
	})
	return found
}

// field is the name of the field that an expression selects.
func field(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return ""
}

// enclosing is the function declaration around a node, nil outside of any.
func enclosing(stack []ast.Node) *ast.FuncDecl {
	for _, n := range stack {
		if fn, ok := n.(*ast.FuncDecl); ok {
			return fn
		}
	}
	return nil
}

func nameOf(i *ast.Ident) string {
	if i == nil {
		return ""
	}
	return i.Name
}
