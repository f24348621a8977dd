// Package hostile runs the slipway program on releases, packages, configurations, kubeconfigs,
// states and bundles that somebody made to do harm, and judges by the system calls of the program
// that nothing of them ran, opened a file that the user did not name, or made a connection.
//
// Each command runs under strace in a network namespace without any interface, so that a
// connection that is tried is noticed and reaches nobody. The tests are for Linux only; they fail
// where strace or namespaces do not work.
//
// Commands that need an engine (install, plan, save, report, reproduce) get the address of an
// engine that does not answer: the tests judge them up to their first question to it. What they
// do with a state happens in the engine's containers by `slipway state` and `slipway dry-run`,
// which run here on a state in a folder. Not reached are steps that work on a cluster,
// a bucket's own protocol, and what happens after the engine has answered.
package hostile
