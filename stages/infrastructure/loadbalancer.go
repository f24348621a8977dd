package infrastructure

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// checkPort is the port of the Service that verifies the load balancer; no platform may use it.
const checkPort = 18080

// loadBalancer fetches a page from a web server behind a Service of type LoadBalancer.
func loadBalancer(ctx context.Context, env *step.Env, in contract.LoadBalancerInput) (contract.LoadBalancerCheck, error) {
	if in.Unused {
		env.Progress("nothing of the platform is reached through a load balancer")
		return contract.LoadBalancerCheck{}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, errCheckLate)
	defer cancel()
	c, err := env.Connect()
	if err != nil {
		return contract.LoadBalancerCheck{}, err
	}
	check := &checker{client: c, env: env, name: "loadbalancer"}
	if err := check.begin(ctx); err != nil {
		return contract.LoadBalancerCheck{}, badLoadBalancer(portFree(), err)
	}
	defer check.end(ctx)
	address, err := useLoadBalancer(ctx, check, in.Image)
	if err != nil {
		fix := portFree()
		if _, none := errors.AsType[noAddress](err); none && env.Existing {
			fix = "see that the cluster gives Services of type LoadBalancer an address, as its cloud's controller or MetalLB does"
		}
		return contract.LoadBalancerCheck{}, badLoadBalancer(fix, err)
	}
	env.Progress("a Service of type LoadBalancer answers at %s", address)
	return contract.LoadBalancerCheck{Address: address}, nil
}

// noAddress is the error of a Service that got no address in time.
type noAddress struct{ error }

// Unwrap returns what the wait said.
func (e noAddress) Unwrap() error { return e.error }

func useLoadBalancer(ctx context.Context, check *checker, image string) (string, error) {
	token, name := rand.Text(), check.name+"-web"
	c := check.client
	serve := "busybox echo " + token + " > /www/index.html && exec busybox httpd -f -p 8080 -h /www" // its only page
	err := check.apply(ctx, `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {%[2]s}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, selector: {app: %[1]s}, ports: [{name: http, port: %[3]d, targetPort: 8080}]}}
`, name, check.podSpec(image, serve, "www", "emptyDir: {}"), checkPort)
	if err != nil {
		return "", err
	}
	if err := readiness.WaitRollout(ctx, c, "Deployment", check.namespace(), name); err != nil {
		return "", err
	}
	address, err := readiness.WaitAddress(ctx, c, check.namespace(), name, checkPort)
	if errors.Is(err, &fault.Fault{Code: kube.CodeWait}) {
		err = noAddress{err}
	}
	if err != nil {
		return "", err
	}
	// No proxy: the address is the cluster's.
	web := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return address, c.WaitFor(ctx, "http://"+address+"/ to answer with the check's page", kube.Poll, func(ctx context.Context) (bool, string, error) {
		got, err := fetch(ctx, web, "http://"+address+"/")
		if err != nil {
			return false, err.Error(), nil
		}
		return got == token, fmt.Sprintf("another page: %.40q", got), nil
	})
}

func fetch(ctx context.Context, web *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := web.Do(req)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	_ = resp.Body.Close()
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", resp.Status)
	}
	return strings.TrimSpace(string(b)), nil
}

// verifyLoadBalancer takes an earlier result as it is: the step access reaches the platform through the
// load balancer in every run.
func verifyLoadBalancer(context.Context, *step.Env, contract.LoadBalancerInput, contract.LoadBalancerCheck) error {
	return nil
}

func portFree() string {
	return "see that port " + strconv.Itoa(checkPort) + " of the load balancer is free"
}

func badLoadBalancer(fix string, err error) error {
	return checkFault(CodeLoadBalancer, "use the load balancer", fix+", then run the same command again", err)
}
