// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/common/policy"
)

func policyMain(args []string) int {
	const usage = "thole policy check FILE, or thole policy show FILE [-- /path/to/program args…]"
	if len(args) >= 1 && (args[0] == "-h" || args[0] == "--help") {
		fmt.Println("Usage: " + usage + "\n\nFILE is a launcher's POLICY.json, a module's [sandbox] table or an operator's TOML file,\ntold apart by its name (.json) and its tables.")
		return 0
	}
	if len(args) < 2 || args[0] != "check" && args[0] != "show" {
		return fail(exitUsage, "policy: check or show, and a file", usage)
	}
	p, err := loadPolicy(args[1])
	if err != nil {
		var pe *policy.Error
		errors.As(err, &pe)
		fail(0, err.Error(), hintOf(err))
		return 1
	}
	if args[0] == "check" {
		if len(args) > 2 {
			return fail(exitUsage, "policy check takes one file", usage)
		}
		fmt.Printf("%s: ok\n", args[1])
		return 0
	}
	argv := []string{"/bin/true"}
	if len(args) > 2 {
		if args[2] != "--" || len(args) < 4 || !filepath.IsAbs(args[3]) {
			return fail(exitUsage, "policy show: the program comes after --, as an absolute path", usage)
		}
		argv = args[3:]
	}
	fmt.Print(p.String())
	return showPlan(p, argv)
}

// loadPolicy reads any of the three documents.
func loadPolicy(name string) (*policy.Policy, error) {
	data, err := readPolicy(name)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return policy.ParseJSON(name, data)
	}
	return policy.ParseOperator(name, data)
}

// readPolicy reads a policy file, bounded before it is in memory.
func readPolicy(name string) ([]byte, error) {
	fh, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer fh.Close()
	st, err := fh.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() && st.Mode()&os.ModeNamedPipe == 0 {
		return nil, &policy.Error{File: name, Msg: "is not a regular file"}
	}
	buf := make([]byte, 0, 64<<10)
	for len(buf) <= policy.MaxDocument {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := fh.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err // half a policy may ask for less than the whole
		}
	}
	return nil, &policy.Error{File: name, Msg: fmt.Sprintf("is larger than %d bytes", policy.MaxDocument), Hint: "split it, or shorten its lists"}
}
