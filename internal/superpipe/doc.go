// Package superpipe placeholder
package superpipe
