// The program behind `make engine`: it makes a Dagger engine reachable.
module github.com/slipway-sh/slipway/ci/engine

go 1.26.0

require (
	github.com/slipway-sh/slipway/ci/build v0.0.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sys v0.47.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/slipway-sh/slipway/ci/build => ../build
