// The program behind `make engine`: it makes a Dagger engine reachable.
module github.com/slipway-sh/slipway/ci/engine

go 1.26.0

require (
	github.com/slipway-sh/slipway/ci/build v0.0.0
	golang.org/x/sys v0.47.0
)

replace github.com/slipway-sh/slipway/ci/build => ../build
