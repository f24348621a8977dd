package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// constant is a constant's value and what its comment says of it.
type constant struct{ value, comment string }

// constants are those of a type, or whose names begin with it, in their order. Each has a
// comment.
func constants(of string) ([]constant, error) {
	files, err := filepath.Glob(filepath.Join(sources, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []constant
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			list, ok := d.(*ast.GenDecl)
			if !ok || list.Tok != token.CONST {
				continue
			}
			for _, s := range list.Specs {
				c, ok, err := constantOf(s.(*ast.ValueSpec), of)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
				if ok {
					out = append(out, c)
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no constants %s", sources, of)
	}
	return out, nil
}

func constantOf(s *ast.ValueSpec, of string) (c constant, ok bool, err error) {
	named, typed := s.Type.(*ast.Ident)
	if (!typed || named.Name != of) && (s.Type != nil || !strings.HasPrefix(s.Names[0].Name, of)) {
		return c, false, nil
	}
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return c, false, fmt.Errorf("%s is no literal", s.Names[0].Name)
	}
	if c.value, err = strconv.Unquote(literal.Value); err != nil {
		return c, false, err
	}
	c.comment = strings.TrimSpace(s.Comment.Text())
	if c.comment == "" {
		return c, false, fmt.Errorf("%s has no comment beside it", s.Names[0].Name)
	}
	return c, true, nil
}

// fieldsOf are the names that a template which is filled in with T may use.
func fieldsOf[T any]() []string {
	t := reflect.TypeFor[T]()
	var out []string
	for i := range t.NumField() {
		out = append(out, t.Field(i).Name)
	}
	return out
}
