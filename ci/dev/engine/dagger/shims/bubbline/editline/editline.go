// Package editline is the line editor of `dagger shell`. The Go module proxy
// does not serve the module that Dagger names, so this one wraps the text input
// of charmbracelet/bubbles: one line, history with the arrow keys, completion
// with tab.
package editline

import (
	"strings"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
)

// InputCompleteMsg tells that the user has pressed enter on a complete input.
type InputCompleteMsg struct{}

// AutoCompleteFn proposes completions for the word at line and column.
type AutoCompleteFn func(entireInput [][]rune, line, col int) (msg string, c Completions)

// Completions is a set of words that may replace a range of the line.
type Completions interface {
	// Words are the candidates, best first.
	Words() []string
	// Range is the half-open range of columns that a candidate replaces.
	Range() (start, end int)
}

type simpleWords struct {
	words      []string
	start, end int
}

func (s simpleWords) Words() []string   { return s.words }
func (s simpleWords) Range() (int, int) { return s.start, s.end }

// SimpleWordsCompletion proposes words for the columns from start to end.
func SimpleWordsCompletion(words []string, _ string, _, start, end int) Completions {
	return simpleWords{words, start, end}
}

// HistoryEncoder changes entries on their way into and out of the history.
type HistoryEncoder interface {
	EncodeHistory(string) string
	DecodeHistory(string) string
	SaveBeforeHistory()
	RestoreAfterHistory()
}

// Style is how the editor looks.
type Style struct{ Editor EditorStyle }

// EditorStyle is how the text looks.
type EditorStyle struct{ CursorLine lipgloss.Style }

// DefaultStyles are the styles with and without the focus.
func DefaultStyles() (focused, blurred Style) { return Style{}, Style{} }

// Model is a bubbletea model of one input line.
type Model struct {
	// Prompt is shown before the text once UpdatePrompt was called.
	Prompt string
	// HideKeyMap is accepted; this editor shows none.
	HideKeyMap bool
	// MaxHistorySize is the number of entries kept; 0 keeps all.
	MaxHistorySize     int
	HistoryEncoder     HistoryEncoder
	AutoComplete       AutoCompleteFn
	CheckInputComplete func(entireInput [][]rune, line, col int) bool

	input   textinput.Model
	history []string
	at      int // index into history; len(history) is the line being typed
	draft   string
}

// New is an editor of that size.
func New(width, _ int) *Model {
	m := &Model{input: textinput.New()}
	m.SetSize(width, 1)
	return m
}

// Init does nothing.
func (m *Model) Init() tea.Cmd { return nil }

// Focus lets the editor take keys.
func (m *Model) Focus() tea.Cmd { return m.input.Focus() }

// Blur stops the editor from taking keys.
func (m *Model) Blur() { m.input.Blur() }

// Reset empties the line.
func (m *Model) Reset() { m.input.Reset(); m.at = len(m.history) }

// SetSize sets the width in columns.
func (m *Model) SetSize(width, _ int) { m.input.Width = max(width-lipgloss.Width(m.Prompt)-1, 1) }

// UpdatePrompt shows a changed Prompt.
func (m *Model) UpdatePrompt() { m.input.Prompt = m.Prompt }

// Value is the text.
func (m *Model) Value() string { return m.input.Value() }

// AtStart reports whether the cursor is at the beginning of the text.
func (m *Model) AtStart() bool { return m.input.Position() == 0 }

// View renders the line.
func (m *Model) View() string { return m.input.View() }

// GetHistory is every entry, oldest first.
func (m *Model) GetHistory() []string { return m.history }

// SetHistory replaces every entry.
func (m *Model) SetHistory(h []string) { m.history = h; m.at = len(h) }

// AddHistoryEntry appends an entry.
func (m *Model) AddHistoryEntry(s string) {
	if m.HistoryEncoder != nil {
		s = m.HistoryEncoder.EncodeHistory(s)
	}
	m.history = append(m.history, s)
	if n := m.MaxHistorySize; n > 0 && len(m.history) > n {
		m.history = m.history[len(m.history)-n:]
	}
	m.at = len(m.history)
}

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if k, ok := msg.(tea.KeyMsg); ok {
		switch k.String() {
		case "enter":
			if m.CheckInputComplete == nil || m.CheckInputComplete(m.lines()) {
				return m, func() tea.Msg { return InputCompleteMsg{} }
			}
			m.input.SetValue(m.input.Value() + " ")
			m.input.CursorEnd()
			return m, nil
		case "up":
			m.move(-1)
			return m, nil
		case "down":
			m.move(+1)
			return m, nil
		case "tab":
			m.complete()
			return m, nil
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return m, cmd
}

func (m *Model) lines() (text [][]rune, line, col int) {
	return [][]rune{[]rune(m.input.Value())}, 0, m.input.Position()
}

func (m *Model) move(by int) {
	to := m.at + by
	if to < 0 || to > len(m.history) {
		return
	}
	if m.at == len(m.history) {
		m.draft = m.input.Value()
		if m.HistoryEncoder != nil {
			m.HistoryEncoder.SaveBeforeHistory()
		}
	}
	m.at = to
	if to == len(m.history) {
		m.input.SetValue(m.draft)
		if m.HistoryEncoder != nil {
			m.HistoryEncoder.RestoreAfterHistory()
		}
	} else if m.HistoryEncoder != nil {
		m.input.SetValue(m.HistoryEncoder.DecodeHistory(m.history[to]))
	} else {
		m.input.SetValue(m.history[to])
	}
	m.input.CursorEnd()
}

func (m *Model) complete() {
	if m.AutoComplete == nil {
		return
	}
	_, c := m.AutoComplete(m.lines())
	if c == nil || len(c.Words()) == 0 {
		return
	}
	text := []rune(m.input.Value())
	start, end := c.Range()
	if start < 0 || end < start || end > len(text) {
		return
	}
	word := commonPrefix(c.Words())
	m.input.SetValue(string(text[:start]) + word + string(text[end:]))
	m.input.SetCursor(start + len([]rune(word)))
}

func commonPrefix(words []string) string {
	p := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, p) {
			p = p[:len(p)-1]
		}
	}
	return p
}
