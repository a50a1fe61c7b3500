package redisstream

// NewLimiter lets tests see the limiter alone.
var NewLimiter = newLimiter

// MaxKept lets tests know the limit.
const MaxKept = maxKept
