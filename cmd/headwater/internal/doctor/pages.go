package doctor

import (
	_ "embed"
	"strings"
)

// Page explains one code.
type Page struct {
	Code  string `json:"code"`
	Title string `json:"title"`
	// Why says what goes wrong, and Mend what to do.
	Why  string `json:"why"`
	Mend string `json:"mend"`
}

//go:embed pages.txt
var text string

// Pages are all pages, in the order of their codes.
func Pages() []Page {
	var pages []Page
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.SplitN(block, "\n", 3)
		code, title, _ := strings.Cut(lines[0], " ")
		pages = append(pages, Page{code, title, lines[1], lines[2]})
	}
	return pages
}

// Title is the title of a code's page.
func Title(code string) string {
	for _, p := range Pages() {
		if p.Code == code {
			return p.Title
		}
	}
	return ""
}

// Markdown is all pages as one document.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# What `headwater doctor` finds\n\nWritten by the command from its own pages. Thresholds stand in the texts of the findings.\n")
	for _, p := range Pages() {
		b.WriteString("\n## " + p.Code + " " + p.Title + "\n\n" + p.Why + "\n\n**What to do.** " + p.Mend + "\n")
	}
	return b.String()
}
