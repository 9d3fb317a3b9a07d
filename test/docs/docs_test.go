// Package docs_test holds the documents to the code: listings are pieces of programs that run, commands print what the text
// says, names and tests that tables mention exist, and so do the files that links lead to.
package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// root is the module's folder as seen from this package.
const root = "../.."

// text returns a file of the module.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(b)
}

// block is a fenced piece of a document.
type block struct {
	kind string // go, console, or nothing
	line int    // of its first line in the document
	text []string
}

// blocks returns the fenced pieces of a document.
func blocks(document string) []block {
	var all []block
	var open *block
	for i, line := range strings.Split(document, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{kind: kind, line: i + 2}
		case fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		}
	}
	return all
}

func TestBlocks(t *testing.T) {
	got := blocks("a\n```go\nx\n\ny\n```\nb\n```\nz\n```\n")
	require.Equal(t, []block{{"go", 3, []string{"x", "", "y"}}, {"", 9, []string{"z"}}}, got)
}

// documents are the project's texts, by their path from the module's folder.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CHANGELOG.md", "examples/README.md"}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(path, ".md") {
			var rel string
			rel, err = filepath.Rel(root, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	}))
	return all
}

// TestLinks follows every link to a file of the project, and to a section of a document.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	seen := 0
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text(t, name), -1) {
			file, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			seen++
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if strings.HasSuffix(to, ".md") && section != "" && !slices.Contains(sections(text(t, to)), section) {
				t.Errorf("%s links to %s: %s has no such section", name, m[1], to)
			}
		}
	}
	require.Greater(t, seen, 20)
}

// sections returns the names that links to a document's headings use: in lower case, blanks as hyphens, other signs left out.
func sections(document string) []string {
	var all []string
	for line := range strings.SplitSeq(document, "\n") {
		if level, heading, ok := strings.Cut(line, " "); ok && strings.HasPrefix(level, "#") && strings.Trim(level, "#") == "" {
			all = append(all, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
					return unicode.ToLower(r)
				default:
					return -1
				}
			}, heading))
		}
	}
	return all
}

func TestSections(t *testing.T) {
	require.Equal(t, []string{"top", "figures-12--14-f-and-fv", "the-papers-pgasrun--n"}, sections("# Top\n#not\ntext\n## Figures 12 – 14, F and F+V\n### The paper's `pgasrun -n`\n"))
}

// table returns the rows of a document's tables whose heads begin with these columns. A row is its cells, without blanks
// around them; what stands between | and | is a cell, and \| is a character of one.
func table(document string, head ...string) [][]string {
	var rows [][]string
	inside := false
	for line := range strings.SplitSeq(document, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
		}
		switch {
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		case !inside && len(cells) >= len(head) && strings.Join(cells[:len(head)], "|") == strings.Join(head, "|"):
			inside = true
		}
	}
	return rows
}

func TestTable(t *testing.T) {
	document := "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n\n| c | b |\n| --- | --- |\n| 2 | z |\n"
	require.Equal(t, [][]string{{"1", "x|y"}}, table(document, "a", "b"))
	require.Equal(t, [][]string{{"2", "z"}}, table(document, "c"))
}
