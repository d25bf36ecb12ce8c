// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/sandbox"
)

func doctorMain(args []string) int {
	asJSON, code, done := doctorFlags(args)
	if done {
		return code
	}
	pf, err := sandbox.Native()
	if err != nil {
		return failErr(err)
	}
	defer pf.Close()
	leaves, dirs, sweepErr := 0, 0, error(nil)
	if s, ok := pf.(platform.Sweeper); ok {
		leaves, dirs, sweepErr = s.SweepAll()
	}
	dirs += sweepTempDirs()
	if sweepErr != nil {
		fail(0, "take away what killed runs left: "+sweepErr.Error(), "thole doctor tries again")
	}
	r, err := pf.Probe(context.Background())
	if err != nil {
		return failErr(err)
	}
	if asJSON {
		fmt.Fprintf(os.Stdout, "%s\n", reportJSON(&r))
		return doctorExit(&r)
	}
	facts := append(pf.Facts(), [2]string{"leftovers", leftovers(leaves, dirs)})
	fmt.Fprint(os.Stdout, reportText(&r, facts))
	return doctorExit(&r)
}

// leftovers says what was swept.
func leftovers(leaves, dirs int) string {
	var l []string
	if leaves > 0 {
		l = append(l, plural(uint64(leaves), "sandbox")+" of killed runs ended and removed")
	}
	if dirs == 1 {
		l = append(l, "1 temporary directory removed")
	} else if dirs > 1 {
		l = append(l, fmt.Sprintf("%d temporary directories removed", dirs))
	}
	if len(l) == 0 {
		return "none"
	}
	return strings.Replace(strings.Join(l, ", "), "sandboxs", "sandboxes", 1)
}
