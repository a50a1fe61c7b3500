package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// HelpPages are the help of all commands as Markdown, by file name.
func HelpPages() map[string]string {
	root := Root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	pages := map[string]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" {
			return
		}
		pages[fileName(c)] = page(c)
		for _, sub := range c.Commands() {
			if c.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(root)
	return pages
}

func fileName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md" }

func page(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n    %s\n", c.CommandPath(), c.Short, c.UseLine())
	if c.Long != "" {
		fmt.Fprintf(&b, "\n```text\n%s\n```\n", c.Long)
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nFor example:\n\n```text\n%s\n```\n", c.Example)
	}
	if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n\n```text\n%s```\n", flags)
	}
	if c.HasParent() {
		fmt.Fprintf(&b, "\nSee also [%s](%s).\n", c.Parent().CommandPath(), fileName(c.Parent()))
	}
	if c.HasAvailableSubCommands() && c.Name() != "completion" {
		b.WriteString("\nCommands:\n\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "* [%s](%s): %s\n", sub.CommandPath(), fileName(sub), sub.Short)
			}
		}
	}
	return b.String()
}
