package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const printed = `{"config":{"scan_level":"symbol"}}
{"osv":{"id":"GO-1","summary":"One"}} {"osv":{"id":"GO-2","summary":"Two"}} {"osv":{"id":"GO-3","summary":"Three"}} {"osv":{"id":"GO-4","summary":"Four"}}
{"finding":{"osv":"GO-1","fixed_version":"v1.2.4","trace":[{"module":"m","version":"v1.2.3"}]}}
{"finding":{"osv":"GO-1","fixed_version":"v1.2.4","trace":[{"module":"m","version":"v1.2.3","package":"m/p","function":"F"}]}}
{"finding":{"osv":"GO-2","trace":[{"module":"n","version":"v1.0.0","package":"n/p"}]}}
{"finding":{"osv":"GO-3","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http","function":"Get"}]}}
{"finding":{"osv":"GO-3","trace":[{"module":"m","version":"v1.2.3","package":"m/http","function":"Get"}]}}
{"finding":{"osv":"GO-4","trace":[{"module":"m","version":"v1.2.3","package":"m/q/r","function":"G"}]}}
{"finding":{"osv":"GO-4","fixed_version":"v0.6.0","trace":[{"module":"m/q","version":"v0.5.0","package":"m/q/r","function":"G"}]}}
`

func TestWhatIsFoundIsJudged(t *testing.T) {
	found, err := read(strings.NewReader(printed))
	require.NoError(t, err)
	require.Len(t, found, 3, "only what has a function in the program")

	require.EqualError(t, reasons{}.check("prog", found), strings.Join([]string{
		"prog has GO-1 (One): m/p.F of m v1.2.3; take v1.2.4, or say in accepted.yaml why it does no harm",
		"prog has GO-3 (Three): net/http.Get of stdlib v1.26.8; take v1.26.9, or say in accepted.yaml why it does no harm",
		"prog has GO-4 (Four): m/q/r.G of m/q v0.5.0; take v0.6.0, or say in accepted.yaml why it does no harm",
	}, "\n"))
	why := reasons{"prog": {"GO-1": "nobody calls F", "GO-3": "nobody gets", "GO-4": "nobody calls G"}}
	require.NoError(t, why.check("prog", found))

	delete(found, "GO-3")
	require.EqualError(t, why.check("prog", found), "prog does not have GO-3 any more: take it out of accepted.yaml")
	why["prog"]["GO-1"] = ""
	require.ErrorContains(t, why.check("prog", found), "prog has GO-1", "a reason is asked for")
	require.ErrorContains(t, why.check("other", found), "other has GO-1", "for each program")
}

func TestWhatGovulncheckPrintedOnlyHalfOf(t *testing.T) {
	_, err := read(strings.NewReader(printed[:100]))
	require.ErrorContains(t, err, "read what govulncheck prints")
}

func TestAcceptedHasAReasonForEach(t *testing.T) {
	why, err := readReasons(accepted)
	require.NoError(t, err)
	for of, all := range why {
		require.NotContains(t, of, " ", "a comma and one space are between programs")
		for id, reason := range all {
			require.Regexp(t, `^GO-20\d\d-\d{4,}$`, id)
			require.Regexp(t, `^20\d\d-\d\d-\d\d: .{40,}`, reason, id)
		}
	}
}

func TestRunWithoutPrograms(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, 2, run([]string{"govulncheck"}, &stdout, &stderr))
	require.Equal(t, "error: give the path of govulncheck, and those of programs\n", stderr.String())
}

func TestReasonsOfSeveralPrograms(t *testing.T) {
	why, err := readReasons([]byte("a, b: {GO-1: one}\nb: {GO-2: two}\n"))
	require.NoError(t, err)
	require.Equal(t, reasons{"a": {"GO-1": "one"}, "b": {"GO-1": "one", "GO-2": "two"}}, why)
}
