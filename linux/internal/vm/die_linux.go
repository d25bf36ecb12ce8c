// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel end cmd when the thread that starts it ends: a
// killed test must not leave an emulator behind.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
