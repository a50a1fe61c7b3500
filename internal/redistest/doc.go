// Package redistest starts real Redis or Valkey servers for tests, standalone, as a
// Cluster and under Sentinel, and a proxy that loses replies and connections.
//
// The server is the program that HEADWATER_REDIS_SERVER names, else redis-server or
// valkey-server on PATH. Servers listen on free ports of 127.0.0.1, keep nothing, and
// end with the test process at the latest. A shared server serves all tests of a test
// process: nobody may stop, pause, flush or reconfigure it.
package redistest
