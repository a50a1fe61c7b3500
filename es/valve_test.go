package es_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

func TestAValveIsOpenUntilItIsClosed(t *testing.T) {
	t.Parallel()
	var none *es.Valve
	require.False(t, none.Closed())
	require.NoError(t, none.Wait(t.Context()))
	v := &es.Valve{}
	v.Open()
	require.NoError(t, v.Wait(t.Context()))
	v.Close()
	v.Close()
	require.True(t, v.Closed())
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, v.Wait(ended), context.Canceled)
	waited := make(chan error)
	go func() { waited <- v.Wait(t.Context()) }()
	v.Open()
	require.NoError(t, <-waited)
	require.False(t, v.Closed())
}
