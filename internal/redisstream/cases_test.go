// Failures that others reported are held against the engine by the tests that bear
// their ids:
//
//	LOST-01 -04 -07 -08 -10 -11 -12, LOST-03 with CHURN-05
//	DUP-02 -03 -04 -07 (a process under SIGSTOP) -08 -13, DLQ-06
//	DEL-01 -03
//	GRP-01 -02 -03 -04 -05 -06 -08
//	DLQ-01 -02 (a process that exits) -03 -04 -05 -08 -09 -10
//	FAIL-01 -03 -04 (a start; the ack is recovery's) -05 -06 -09 -10 -11
//	CONN-01 -02 -03 -04 -06 -07 -08 -11 -13 -14 -15
//	CLU-01 -04 -09, BIG-02 -04 -05 (in small), EVO-08
//
// Elsewhere, or later:
//
//	LOST-05, DEL-04…-09, DUP-09, -11, -12, BIG-01  the sweep's and the trim's own: package recovery
//	LOST-09         the outbox: estest
//	DUP-01, DUP-14  package commandbus: the buses make the ids and the consumers' names
//	DUP-08          a stuck handler keeps its worker and its key, others flow; a limit is es.Timeout, a metric is missing
//	CONN-10         certificates: package redisurl; a bus takes the client that it is given
//	FAIL-10         one failover by crash and two in order, not five, and no sentinel down
//	FAIL-11, FAIL-05  health has no place in the engine yet; resuming is tested
//	GRP-09          the store's versions: package aggregate
package redisstream_test
