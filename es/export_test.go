package es

// NewIDGeneratorAt is a generator with a clock of the test's own, in milliseconds.
func NewIDGeneratorAt(machine int, clock func() int64) (*IDGenerator, error) {
	g, err := NewIDGenerator(machine)
	if err == nil {
		g.clock = clock
	}
	return g, err
}
