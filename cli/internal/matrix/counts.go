package matrix

import (
	"fmt"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// CodeLost: an upgrade has lost rows that were acknowledged, or requests that it should not
// have disturbed.
const CodeLost fault.Code = "MTX-003"

// What checks of workloads may count, and a cell is judged by. A release without such
// workloads is judged by its checks and tests alone.
const (
	RowsAcknowledged = "rows-acknowledged" // rows that were acknowledged to those who wrote them
	RowsThere        = "rows-there"        // how many of these there are
	Requests         = "requests"          // requests, from before the upgrade until after it
	RequestsFailed   = "requests-failed"   // how many of these had no proper answer
)

// counts are those of the checks of workloads in a run, of all together; nil: nothing was counted.
func counts(run *report.Run) map[string]int64 {
	if run == nil {
		return nil
	}
	var sum map[string]int64
	for _, s := range run.Steps {
		for name, n := range s.Counts {
			if sum == nil {
				sum = map[string]int64{}
			}
			sum[name] += n
		}
	}
	return sum
}

// lost is what the upgrade has lost and must not lose, or that nobody knows it; empty: nothing.
// Which counts a release's checks have is not known beforehand, but two of them go together.
func (c *cell) lost() string {
	r := c.result
	for _, pair := range [][2]string{{RowsAcknowledged, RowsThere}, {Requests, RequestsFailed}} {
		_, one := r.Counts[pair[0]]
		_, other := r.Counts[pair[1]]
		if one != other { // it is not nothing, but unknown
			return fmt.Sprintf("the checks have counted only one of %s and %s", pair[0], pair[1])
		}
	}
	if rows, there := r.Counts[RowsAcknowledged], r.Counts[RowsThere]; there < rows {
		return fmt.Sprintf("%d of %d rows that were acknowledged are missing", rows-there, rows)
	}
	failed := r.Counts[RequestsFailed]
	if failed == 0 || c.what.Style != contract.Graceful || c.what.Faults != NoFault {
		return ""
	}
	return fmt.Sprintf("%d of %d requests failed in a graceful upgrade that nothing disturbed", failed, r.Counts[Requests])
}

// Rows says how many of the acknowledged rows there are: "812 of 812"; "-" if nobody counted.
func (r Result) Rows() string { return r.share(RowsThere, RowsAcknowledged) }

// FailedRequests says how many of the requests failed, as Rows does.
func (r Result) FailedRequests() string { return r.share(RequestsFailed, Requests) }

func (r Result) share(part, whole string) string {
	all, counted := r.Counts[whole]
	if !counted {
		return "-"
	}
	return fmt.Sprintf("%d of %d", r.Counts[part], all)
}
