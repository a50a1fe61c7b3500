package wire

// IsSimple is tested by itself: from outside it only shows in the time taken.
var IsSimple = isSimple
