package bounded

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
	"time"
)

// Moment are the limits of work that is done in no time, unless somebody wants it to take long.
func Moment() Limits { return Limits{Time: 5 * time.Second, Memory: Usual().Memory} }

// Within is Work that nothing but its limits ends, whatever its caller waits for.
func Within[T any](most Limits, work func() (T, error)) (T, error) {
	return Work(context.Background(), most, work) //nolint:forbidigo // the limits end it
}

// Template is a text template that others wrote.
type Template struct{ parsed *template.Template }

// ReadTemplate reads a template and tries it with data.
func ReadTemplate(fsys fs.FS, name string, data any) (*Template, error) {
	text, err := FS(fsys, name, Written)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	t := &Template{parsed}
	_, err = t.Fill(data)
	return t, err
}

// Fill fills the template in, which may have loops without end.
func (t *Template) Fill(data any) (string, error) {
	return Within(Moment(), func() (string, error) {
		out := short{}
		err := t.parsed.Execute(&out, data)
		return out.b.String(), err
	})
}

// maxText is how long the text of a template may be, in bytes.
const maxText = 64 << 10

// short is text of at most maxText.
type short struct{ b strings.Builder }

func (s *short) Write(b []byte) (int, error) {
	if s.b.Len()+len(b) > maxText {
		return 0, fmt.Errorf("the text is longer than %d bytes", maxText)
	}
	return s.b.Write(b)
}
