// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command gotest runs `go test` with the arguments given, prints what it would
// print, and then every test that was skipped, with its reason. With -strict a
// reason that the file named by -allow does not hold fails the run: a test that
// silently stops running would otherwise look like one that passes.
//
//	go run ./common/deptest/gotest -strict -allow .ci/allowed-skips -timeout 15m ./...
//
// The file has one reason, or a part of one, per line; # begins a comment.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	status, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(status)
}

// run is main but for the exit. The status is that of go test, or 1 when only
// a skip was wrong.
func run(args []string, stdout, stderr io.Writer) (int, error) {
	strict := false
	var allowed []string
own:
	for len(args) > 0 {
		switch {
		case args[0] == "-strict":
			strict, args = true, args[1:]
		case args[0] == "-allow" && len(args) > 1:
			list, err := readAllowed(args[1])
			if err != nil {
				return 64, err
			}
			allowed, args = list, args[2:]
		default:
			break own
		}
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 70, err
	}
	if err := cmd.Start(); err != nil {
		return 70, fmt.Errorf("start go test: %w", err)
	}
	r := newReport(stdout)
	readErr := r.read(pipe)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, pipe) // or go test would block on the pipe
	}
	status := 0
	if err := cmd.Wait(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() < 0 {
			return 70, fmt.Errorf("run go test: %w", err)
		}
		status = exit.ExitCode()
	}
	if readErr != nil {
		return max(status, 70), readErr
	}
	if refused := r.printSkips(allowed, strict); refused > 0 && status == 0 {
		return 1, fmt.Errorf("%d skipped tests have no allowed reason", refused)
	}
	return status, nil
}

func readAllowed(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list, s.Err()
}
