package redisurl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/internal/redisurl"
)

// Not parallel: it changes the environment, and Go reads SSL_CERT_FILE once.
func TestConnectWithTLS(t *testing.T) {
	known, knownFile := tlsServer(t)
	stranger, _ := tlsServer(t)
	t.Setenv("SSL_CERT_FILE", knownFile)

	c, topology := connect(t, "rediss://"+known)
	require.Equal(t, redisurl.Standalone, topology)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())

	_, port, err := net.SplitHostPort(known)
	require.NoError(t, err)
	requireConnectError(t, "rediss://localhost:"+port+"?max_retries=-1", "certificate is not valid for any names")
	requireConnectError(t, "rediss://"+stranger+"?max_retries=-1", "signed by unknown authority")
	c, _ = connect(t, "rediss://"+stranger+"?skip_verify=true")
	require.NoError(t, c.Ping(t.Context()).Err())
}

// tlsServer is the address of a server with a certificate of its own for 127.0.0.1, and
// the certificate's file.
func tlsServer(t *testing.T) (addr, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certificate, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, certificate, "CERTIFICATE", cert)
	writePEM(t, keyFile, "PRIVATE KEY", private)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	redistest.Standalone(t, "tls-port "+port, "tls-cert-file "+certificate, "tls-key-file "+keyFile,
		"tls-ca-cert-file "+certificate, "tls-auth-clients no")
	return addr, certificate
}

func writePEM(t *testing.T, file, kind string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
}
