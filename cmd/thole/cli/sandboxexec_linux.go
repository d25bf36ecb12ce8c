// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tholehq/thole/common/platform"
	"github.com/tholehq/thole/common/policy"
	"github.com/tholehq/thole/common/sandbox"
	"golang.org/x/sys/unix"
)

// confinedVar names, in the launcher's environment, the inherited pipe that is
// told when the confinement holds.
const confinedVar = "OARBANK_CONFINED"

// sandboxExecMain is the launcher: it reads the policy, confines this process
// and becomes the program. Its exit statuses are a contract: 64 usage, 70 the
// confinement could not be set up in full, 71 the program could not be
// started.
func sandboxExecMain(args []string) int {
	const usage = "sandbox-exec POLICY.json -- /path/to/program args…"
	if len(args) < 2 || args[1] != "--" {
		return fail(exitUsage, "sandbox-exec: no policy, or no -- after it", usage)
	}
	argv := args[2:]
	if len(argv) == 0 || !filepath.IsAbs(argv[0]) {
		return fail(exitUsage, "sandbox-exec: the program must be an absolute path", usage)
	}
	told, env, err := handshake(os.Environ())
	if err != nil {
		return failErr(&platform.Error{Kind: platform.ErrConfine, Err: err})
	}
	data, err := readPolicy(args[0])
	if err != nil {
		return failErr(&platform.Error{Kind: platform.ErrConfine, Err: fmt.Errorf("read policy: %w", err)})
	}
	pol, err := policy.ParseJSON(args[0], data)
	if err != nil {
		fail(0, err.Error(), hintOf(err))
		return platform.ExitConfine
	}
	dir, err := os.Getwd()
	if err != nil {
		return failErr(&platform.Error{Kind: platform.ErrConfine, Err: fmt.Errorf("find working directory: %w", err)})
	}
	pf, err := sandbox.Native()
	if err != nil {
		return failErr(err)
	}
	ex, ok := pf.(platform.Execer)
	if !ok {
		return failErr(&platform.Error{Kind: platform.ErrUnsupported})
	}
	plan, err := ex.PlanExec(platform.Spec{Policy: pol, Path: argv[0], Argv: argv, Env: env, Dir: dir})
	if err != nil {
		return failErr(err)
	}
	return failErr(plan.Exec(told))
}

// handshake takes the pipe out of the environment and returns how to write to
// it: one byte, then it is closed.
func handshake(environ []string) (told func() error, env []string, err error) {
	told = func() error { return nil }
	for _, kv := range environ {
		v, ok := strings.CutPrefix(kv, confinedVar+"=")
		if !ok {
			env = append(env, kv)
			continue
		}
		fd, err := strconv.Atoi(v)
		if err != nil || fd < 3 {
			return nil, nil, fmt.Errorf("%s=%q is no inherited descriptor", confinedVar, v)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, nil, fmt.Errorf("%s=%d: %w", confinedVar, fd, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, fmt.Errorf("%s=%d is not a pipe", confinedVar, fd)
		}
		told = func() error {
			if _, err := unix.Write(fd, []byte{1}); err != nil {
				return fmt.Errorf("tell the parent: %w", err)
			}
			return unix.Close(fd)
		}
	}
	return told, env, nil
}
