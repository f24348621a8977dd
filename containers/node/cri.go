package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// dialContainerd returns a connection to containerd whose calls wait until it
// answers.
func dialContainerd() (*grpc.ClientConn, error) {
	c, err := grpc.NewClient("unix://"+criSocket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return c, nil
}

// awaitContainerd waits until the CRI is ready; it opens its services before
// that and refuses calls.
func awaitContainerd(ctx context.Context, c *grpc.ClientConn) error {
	runtime := cri.NewRuntimeServiceClient(c)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, last = runtime.Version(ctx, &cri.VersionRequest{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for containerd: %w", errors.Join(err, last))
	}
	return nil
}

// removeSandboxes removes all pods of the last start, which have no process any longer. The kubelet
// would remove them one after the other before it starts the pods again.
func removeSandboxes(ctx context.Context, c *grpc.ClientConn) error {
	runtime := cri.NewRuntimeServiceClient(c)
	list, err := runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("list the pods of the last start: %w", err)
	}
	remove, ctx := errgroup.WithContext(ctx)
	remove.SetLimit(8)
	for _, sandbox := range list.Items {
		remove.Go(func() error {
			if _, err := runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox.Id}); err != nil {
				return fmt.Errorf("take down pod %s/%s of the last start: %w", sandbox.Metadata.GetNamespace(), sandbox.Metadata.GetName(), err)
			}
			if _, err := runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox.Id}); err != nil {
				return fmt.Errorf("remove pod %s/%s of the last start: %w", sandbox.Metadata.GetNamespace(), sandbox.Metadata.GetName(), err)
			}
			return nil
		})
	}
	return remove.Wait()
}

// stopContainers asks every running container to end and kills it after grace.
func stopContainers(ctx context.Context, c *grpc.ClientConn, grace time.Duration) error {
	runtime := cri.NewRuntimeServiceClient(c)
	list, err := runtime.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		return fmt.Errorf("list the containers: %w", err)
	}
	stop, ctx := errgroup.WithContext(ctx)
	for _, container := range list.Containers {
		stop.Go(func() error {
			_, err := runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: container.Id, Timeout: int64(grace / time.Second)})
			if err != nil {
				return fmt.Errorf("stop container %s: %w", container.Metadata.GetName(), err)
			}
			return nil
		})
	}
	return stop.Wait()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
