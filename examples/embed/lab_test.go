package main

import (
	"testing"

	"github.com/slipway-sh/slipway/providers/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Suite{
		Provider: Provider{},
		Valid:    []string{`{}`, `{"port": 9443}`},
		Invalid:  []string{`{"port": 80}`, `{"port": "many"}`},
	})
}
