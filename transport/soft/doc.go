// Package soft
package soft
