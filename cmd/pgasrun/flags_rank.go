package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"gopgas/internal/crew"
	"gopgas/internal/launch"
)

// parseOutput reads the flags that say where the ranks' output goes.
func parseOutput(c *cli.Context, s *launch.Spec) (err error) {
	if s.Label && s.Prefix != "" {
		return usage("--label and --prefix: wanted one of them; --prefix '%%r: ' is the label")
	}
	if s.Tee && s.Output == "" && s.Error == "" {
		return usage("--tee without -o: wanted -o FILE, where the output goes beside here")
	}
	for name, pattern := range map[string]string{"--prefix": s.Prefix, "-o": s.Output, "-e": s.Error} {
		if err := launch.CheckPattern(pattern, name != "--prefix"); err != nil {
			return usage("%s %w", name, err)
		}
	}
	switch only := c.String("only"); {
	case !c.IsSet("only"):
	case only == "none":
		s.Only = []int{}
	default:
		if s.Only, err = crew.ParseList(only, s.N); err != nil {
			return usage("--only %w, or none", err)
		}
	}
	return nil
}

func parseBinding(v string) (crew.Binding, error) {
	switch v {
	case "none":
		return crew.BindNone, nil
	case "core":
		return crew.BindCore, nil
	case "numa":
		return crew.BindNUMA, nil
	}
	return 0, usage("--bind-to %s: wanted none, core or numa", v)
}

// parseWraps reads RANKS:'COMMAND WORDS', any number of them.
func parseWraps(values []string, n int) (map[int][]string, error) {
	var wraps map[int][]string
	for _, v := range values {
		ranks, command, ok := strings.Cut(v, ":")
		words, err := splitWords(command)
		if !ok || err != nil || len(words) == 0 {
			return nil, usage("--wrap %s: wanted RANKS:'COMMAND', such as 0:'dlv exec --'", v)
		}
		if ranks == "all" {
			ranks = fmt.Sprintf("0-%d", n-1)
		}
		list, err := crew.ParseList(ranks, n)
		if err != nil {
			return nil, usage("--wrap %s: ranks %w, or all", v, err)
		}
		for _, r := range list {
			if wraps == nil {
				wraps = map[int][]string{}
			}
			if wraps[r] != nil {
				return nil, usage("--wrap: two commands for rank %d", r)
			}
			wraps[r] = words
		}
	}
	return wraps, nil
}

// splitWords splits a command as a shell does, with quotes and backslashes and nothing else.
func splitWords(s string) (words []string, err error) {
	var word strings.Builder
	begun, quote := false, rune(0)
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, usage("%q: a quote or backslash without its other half", s)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
