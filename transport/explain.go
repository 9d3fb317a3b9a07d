package transport

// Explainer is implemented by domains that know more about a completion than its Status says.
type Explainer interface {
	// Explain returns the device's words for a completion that is not StatusOK, and the likely cause; nil where there
	// is nothing to add. Ask soon: a domain remembers the newest connections of each peer only.
	Explain(c Completion) error
}
