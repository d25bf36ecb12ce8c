// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/linux/internal/vm"
)

// table is what the matrix found out: rows of cells, one per kernel.
type table struct {
	kernels []vm.Kernel
	root    rows // capabilities, as root
	user    rows // and as an ordinary user
	fact    rows
	notes   []string
}

// rows are in the order of their first cell; a cell is by kernel name.
type rows struct {
	names []string
	cells map[string]map[string]string
}

func (r *rows) set(row, kernel, cell string) {
	if r.cells == nil {
		r.cells = map[string]map[string]string{}
	}
	if r.cells[row] == nil {
		r.cells[row] = map[string]string{}
		r.names = append(r.names, row)
	}
	r.cells[row][kernel] = cell
}

func newTable() *table { return &table{} }

func (t *table) kernel(k vm.Kernel) { t.kernels = append(t.kernels, k) }

// report takes what doctor says. A cell is what enforces the capability, or
// "no" and a note with the reason.
func (t *table) report(k vm.Kernel, user bool, rep platform.Report) {
	r := &t.root
	if user {
		r = &t.user
	}
	for _, f := range rep.Findings {
		cell := f.By
		if f.Status != platform.Enforced {
			cell = "no" + t.note(f.Reason)
		}
		r.set(string(f.Capability), k.Name, cell)
	}
}

// note returns the mark of a footnote; the same text has one.
func (t *table) note(text string) string {
	i := slices.Index(t.notes, text)
	if i < 0 {
		t.notes = append(t.notes, text)
		i = len(t.notes) - 1
	}
	return fmt.Sprintf(" [%d]", i+1)
}

// factMark begins the lines with which guests report: the mark, the row and
// the cell, separated by tabs.
const factMark = "matrix-fact"

func (t *table) facts(k vm.Kernel, out string) {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 3 && f[0] == factMark {
			t.fact.set(f[1], k.Name, f[2])
		}
	}
}

// markdown renders the table. Releases appear in the heading alone, so that
// the rest stays when a distribution publishes its next one.
func (t *table) markdown() string {
	var b strings.Builder
	for _, part := range []struct {
		heading string
		r       rows
	}{{"as root, by", t.root}, {"as an ordinary user, by", t.user}, {"else", t.fact}} {
		if len(part.r.names) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s |", part.heading)
		for _, k := range t.kernels {
			fmt.Fprintf(&b, " Linux %s |", short(k.Release))
		}
		b.WriteString("\n|---" + strings.Repeat("|---", len(t.kernels)) + "|\n")
		for _, row := range part.r.names {
			fmt.Fprintf(&b, "| %s |", row)
			for _, k := range t.kernels {
				cell := part.r.cells[row][k.Name]
				if cell == "" {
					cell = "not run"
				}
				fmt.Fprintf(&b, " %s |", strings.ReplaceAll(cell, "|", `\|`))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	for i, n := range t.notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}

// short is a release without what the distribution adds.
func short(release string) string {
	end := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		return release
	}
	return release[:end]
}

const golden = "testdata/table.md"

// compare holds the table to the golden one, but for its headings.
func compare(t *testing.T, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, old := body(text), body(string(want))
	for _, l := range old {
		if !slices.Contains(got, l) {
			t.Errorf("no longer so: %s", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(old, l) {
			t.Errorf("new: %s", l)
		}
	}
	if t.Failed() {
		t.Logf("where this is right, write %s anew with -update", golden)
	}
}

// body returns the lines that are the same for each release of a kernel.
func body(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "| Linux ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestMarkdown(t *testing.T) {
	tab := newTable()
	tab.kernel(vm.Kernel{Name: "6.1", Release: "6.1.0-57-cloud-amd64"})
	tab.kernel(vm.Kernel{Name: "newest", Release: "7.3.4+deb13-cloud-amd64"})
	enforced := platform.Finding{Capability: platform.FS, Status: platform.Enforced, By: "landlock"}
	lacking := platform.Finding{Capability: platform.FS, Status: platform.Unavailable, Reason: "a | b"}
	tab.report(tab.kernels[0], false, platform.Report{Findings: []platform.Finding{lacking}})
	tab.report(tab.kernels[1], false, platform.Report{Findings: []platform.Finding{enforced}})
	tab.report(tab.kernels[1], true, platform.Report{Findings: []platform.Finding{lacking}})
	tab.facts(tab.kernels[0], "=== RUN\nmatrix-fact\ta | b\tc\n    matrix-fact\tlast\td\nmatrix-fact\tshort\n")
	const want = `| as root, by | Linux 6.1.0 | Linux 7.3.4 |
|---|---|---|
| fs | no [1] | landlock |

| as an ordinary user, by | Linux 6.1.0 | Linux 7.3.4 |
|---|---|---|
| fs | not run | no [1] |

| else | Linux 6.1.0 | Linux 7.3.4 |
|---|---|---|
| a | b | c | not run |
| last | d | not run |

1. a | b
`
	if got := tab.markdown(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := body(want); len(got) != 8 || slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "7.3.4") }) {
		t.Errorf("body: %q", got)
	}
}

func TestSkipAllowed(t *testing.T) {
	for _, c := range []struct {
		kernel, test string
		want         bool
	}{{"6.1", "TestTask", true}, {"6.1", "TestHooks/broker", true}, {"6.12", "TestTask", false}, {"6.12", "TestTablesFresh", true}, {"6.12", "TestTablesFreshly", false},
		{"newest", "TestHooks/udplite,_rule", true}, {"newest", "TestHooks/broker", false}, {"newest", "TestHooks", false}, {"", "TestGuestLSM", true}} {
		if skipAllowed(c.kernel, c.test) != c.want {
			t.Errorf("%s %s: %v", c.kernel, c.test, !c.want)
		}
	}
}
