package redisstream

// NewLimiter lets tests see the limiter alone.
var NewLimiter = newLimiter
