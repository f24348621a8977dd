package kubetest

import (
	"encoding/json"
	"net/http"
	"slices"
)

// review answers whether one may do something, or everything.
func (a *API) review(w http.ResponseWriter, r *http.Request) {
	asked, err := body(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	spec, _ := asked["spec"].(map[string]any)
	right, _ := spec["resourceAttributes"].(map[string]any)
	verb, _ := right["verb"].(string)
	resource, _ := right["resource"].(string)
	allowed := len(a.Forbidden) == 0 || verb != "*" && !slices.Contains(a.Forbidden, verb+" "+resource)
	asked["status"] = map[string]any{"allowed": allowed}
	_ = json.NewEncoder(w).Encode(asked)
}
