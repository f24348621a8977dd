package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// value is what the register holds: the write that counts.
type value struct {
	generation int64
	n          int
}

// access is what porcupine is told of an event.
type access struct {
	write bool
	value value // written, or read
}

// model is a register that is versions.Value: it holds the last write of the highest
// generation. A write of a lower one changes nothing, whenever it arrives.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return value{} },
		Step: func(state, input, _ any) (bool, any) {
			now, a := state.(value), input.(access)
			switch {
			case !a.write:
				return a.value == now, now
			case a.value.generation < now.generation:
				return true, now
			}
			return true, a.value
		},
		DescribeOperation: func(input, _ any) string {
			a := input.(access)
			if a.write {
				return fmt.Sprintf("write %d/%d", a.value.generation, a.value.n)
			}
			return fmt.Sprintf("read %d/%d", a.value.generation, a.value.n)
		},
	}
}

// decideLimit is how long it may take to decide whether a register's history is right.
const decideLimit = 2 * time.Minute

// operations are those of the register. A write that was not acknowledged may take effect at
// any time, or never, and one that the network delivered once more until then. Where nobody
// has seen that they did, they are left out: it explains nothing.
func operations(events []Event) (all []porcupine.Operation) {
	calls, seen, clients, end := map[value]int64{}, map[value]bool{}, map[string]int{}, int64(0)
	for _, e := range events {
		v := value{e.Generation, e.N}
		switch {
		case e.Op == Write:
			calls[v] = e.Call
		case e.Op == Read && e.acknowledged():
			seen[v] = true
		}
		end = max(end, e.Call+1, e.Return+1)
	}
	for _, e := range events {
		v := value{e.Generation, e.N}
		o := porcupine.Operation{Call: e.Call, Return: e.Return, Input: access{e.Op != Read, v}}
		switch {
		case (e.Op == Read || e.Op == Write) && e.acknowledged():
		case e.Op == Write && seen[v]:
			o.Return = end
		case e.Op == Arrive && seen[v]:
			o.Call = calls[v] // who looks while it arrives need not see what it was sent after
		default:
			continue
		}
		client, ok := clients[e.Who]
		if !ok {
			client = len(clients)
			clients[e.Who] = client
		}
		o.ClientId = client
		all = append(all, o)
	}
	return all
}

// register: what was read is what one value that is accessed by one at a time could show.
func register(events []Event) []Anomaly {
	switch porcupine.CheckOperationsTimeout(model(), operations(events), decideLimit) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return []Anomaly{{Kind: Wrong, Says: "what was read does not follow from what was written"}}
	default:
		return []Anomaly{{Kind: Wrong, Says: fmt.Sprintf("it could not be decided within %s", decideLimit)}}
	}
}

// Draw writes a page that shows the history of the register, of which the logs are in a
// directory.
func Draw(dir, file string) error {
	events, err := Load(dir)
	if err != nil {
		return err
	}
	_, info := porcupine.CheckOperationsVerbose(model(), operations(events), decideLimit)
	return porcupine.VisualizePath(model(), info, file)
}
