package secrets

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	// assignment matches the beginning of an entry.
	assignment = regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?([^\s=]+)[ \t]*=[ \t]*`)
	// reference matches what some readers replace by a variable, and others do not.
	reference = regexp.MustCompile(`(^|[^\\])(\\\\)*\$[A-Za-z_{(]`)
	// comment matches a comment behind a value.
	comment = regexp.MustCompile(`(^|[ \t]+)#.*$`)
)

// Lines reads a .env file: NAME=value per line, also after export. Single quotes keep a value as it is, double
// quotes allow escapes such as \n, both allow several lines. Elsewhere a space and # begin a comment. The last
// value of a name counts. Ambiguous values are errors, which name the line and never quote it.
func Lines(text string, valid func(name string) bool) (map[string]string, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	out := map[string]string{}
	for n := 1; text != ""; {
		line, rest, _ := strings.Cut(text, "\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			text, n = rest, n+1
			continue
		}
		m := assignment.FindStringSubmatch(line)
		if m == nil || !valid(m[1]) {
			return nil, fmt.Errorf("line %d is not NAME=value", n)
		}
		value, after, err := value(text[len(m[0]):])
		if err != nil {
			return nil, fmt.Errorf("line %d, %s: %w", n, m[1], err)
		}
		out[m[1]] = value
		n += strings.Count(text[:len(text)-len(after)], "\n")
		text = after
	}
	return out, nil
}

// value reads a value, and returns the text after its last line.
func value(text string) (value, after string, err error) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		line, after, _ := strings.Cut(text, "\n")
		line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
		if reference.MatchString(line) {
			return "", "", errors.New("it has $ before a name, which some readers of such files replace: put the value in single quotes")
		}
		return line, after, nil
	}
	quote := text[0]
	end := 1
	for ; end < len(text) && text[end] != quote; end++ {
		if quote == '"' && text[end] == '\\' {
			end++
		}
	}
	if end >= len(text) {
		return "", "", errors.New("the quotes are not closed")
	}
	value = text[1:end]
	behind, after, _ := strings.Cut(text[end+1:], "\n")
	if comment.ReplaceAllString(strings.TrimRight(behind, " \t"), "") != "" {
		return "", "", errors.New("there is text behind the quotes: put the whole value in them")
	}
	if quote == '\'' {
		return value, after, nil
	}
	if reference.MatchString(value) {
		return "", "", errors.New(`it has $ before a name, which some readers of such files replace: write \$, or put the value in single quotes`)
	}
	value = strings.NewReplacer(`\\`, `\\`, `\$`, "$", `\'`, "'", "\n", `\n`, "\t", `\t`).Replace(value)
	if value, err = strconv.Unquote(`"` + value + `"`); err != nil {
		return "", "", errors.New(`a backslash in the quotes begins no escape: write \\, or put the value in single quotes`)
	}
	return value, after, nil
}
