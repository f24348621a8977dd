package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is an access file for the user whose certificate has this name. It
// holds everything itself and refers to no other file.
func (p *pki) kubeconfig(user, cluster, server string) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: p.pairs[clusterCA].certPEM}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: p.pairs[user].certPEM,
		ClientKeyData:         p.pairs[user].keyPEM,
	}
	c.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	c.CurrentContext = cluster
	b, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig of %s: %w", user, err)
	}
	return b, nil
}

// writeKubeconfigs writes the access files of the components and, last, the one
// for the outside.
func (p *pki) writeKubeconfigs(s settings) error {
	for _, user := range []string{"admin", "controller-manager", "scheduler", "kubelet", "proxy"} {
		b, err := p.kubeconfig(user, s.ClusterName, localAPI)
		if err != nil {
			return err
		}
		if err := writeFile(s.pki(user+".kubeconfig"), b, 0o600); err != nil {
			return err
		}
	}
	b, err := p.kubeconfig("admin", s.ClusterName, fmt.Sprintf("https://cluster:%d", apiPort))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.AccessFile), 0o700); err != nil {
		return fmt.Errorf("make the directory of the access file: %w", err)
	}
	return writeFile(s.AccessFile, b, 0o600)
}
