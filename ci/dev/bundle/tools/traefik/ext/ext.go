// Package ext has nothing to add to Traefik's dynamic configuration. Traefik embeds these types
// for programs that have it as a library: its own are empty, too, in a module of its repository
// that no module proxy serves.
package ext

// HTTP is embedded in the configuration of HTTP.
type HTTP struct{}

// Router is embedded in the configuration of an HTTP router.
type Router struct{}
