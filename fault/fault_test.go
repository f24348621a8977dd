package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestMap(t *testing.T) {
	hide := strings.NewReplacer("c4nary", "***").Replace
	require.NoError(t, fault.Map(nil, hide))
	plain := fmt.Errorf("read: %w", io.EOF)
	require.Equal(t, plain, fault.Map(plain, hide), "what stays as it is has its causes")
	require.EqualError(t, fault.Map(errors.New("login as c4nary"), hide), "login as ***")

	f := &fault.Fault{Code: "STP-001", Class: fault.Step, Op: "push", Fix: "look", Log: "log.txt", Err: io.EOF}
	require.Same(t, f, f.Map(hide))
	require.Equal(t, error(f), fault.Map(f, hide))
	for what, err := range map[string]error{
		"in its cause":  &fault.Fault{Code: "STP-001", Class: fault.Step, Op: "push", Fix: "look", Log: "log.txt", Err: errors.New("as c4nary")},
		"in its remedy": &fault.Fault{Code: "STP-001", Class: fault.Step, Op: "push", Fix: "log in as c4nary", Log: "log.txt", Err: io.EOF},
		"around it":     fmt.Errorf("c4nary: %w", f),
	} {
		got, ok := errors.AsType[*fault.Fault](fault.Map(err, hide))
		require.True(t, ok, what)
		require.Equal(t, fault.Code("STP-001"), got.Code, what)
		require.Equal(t, fault.Step, got.Class, what)
		require.Equal(t, "log.txt", got.Log, what)
		require.NotContains(t, got.Error()+got.Fix, "c4nary", what)
		require.Contains(t, got.Error(), "push: ", what)
	}
	require.EqualError(t, fault.Map(fmt.Errorf("c4nary: %w", f), hide), "***: push: EOF")
}

// TestAll: each error of a join has its own fault, whatever is around it; a fault's causes are
// part of it.
func TestAll(t *testing.T) {
	a, c := &fault.Fault{Code: "STP-001", Op: "a", Err: io.EOF}, &fault.Fault{Code: "RUN-002", Op: "c", Err: io.EOF}
	b := &fault.Fault{Code: "RUN-001", Op: "b", Err: errors.Join(a, c)}
	err := fmt.Errorf("step: %w", errors.Join(fmt.Errorf("first: %w", a), io.EOF, errors.Join(b, c)))
	require.Equal(t, []*fault.Fault{a, b, c}, fault.All(err))
	require.Empty(t, fault.All(io.EOF))
	require.Empty(t, fault.All(nil))
}
