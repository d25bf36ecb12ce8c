// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/common/sandtest"
)

// patience is far above what anything here takes: it ends a test that hangs.
const patience = time.Minute

// signalsMain counts signals, and prints the counts at SIGUSR1.
func signalsMain() {
	ch := make(chan os.Signal, 64)
	signal.Notify(ch, unix.SIGINT, unix.SIGTERM, unix.SIGWINCH, unix.SIGUSR1)
	n := map[os.Signal]int{}
	fmt.Println("ready", os.Getpid())
	for s := range ch {
		n[s]++
		if s == unix.SIGUSR1 {
			fmt.Printf("counts INT=%d TERM=%d WINCH=%d\n", n[unix.SIGINT], n[unix.SIGTERM], n[unix.SIGWINCH])
			os.Exit(5)
		}
		fmt.Println("got", unix.SignalName(s.(syscall.Signal)))
	}
}

// sessionMain is a shell of one job: it runs its arguments in a group of their
// own in the terminal's foreground, tells descriptor 3 what becomes of them,
// and continues a stopped one when descriptor 4 says so.
func sessionMain() {
	told, orders := os.NewFile(3, "told"), bufio.NewReader(os.NewFile(4, "orders"))
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := c.Start(); err != nil {
		fmt.Fprintln(told, err)
		os.Exit(1)
	}
	fmt.Fprintln(told, "pid", c.Process.Pid)
	for {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(c.Process.Pid, &ws, syscall.WUNTRACED|syscall.WCONTINUED, nil); err == syscall.EINTR {
			continue
		}
		switch {
		case ws.Stopped():
			fmt.Fprintln(told, "stopped")
			_, _ = orders.ReadString('\n')
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGCONT)
		case ws.Continued():
			fmt.Fprintln(told, "continued")
		case ws.Signaled():
			fmt.Fprintln(told, "signal", int(ws.Signal()))
			os.Exit(0)
		default:
			fmt.Fprintln(told, "exit", ws.ExitStatus())
			os.Exit(0)
		}
	}
}

// terminal is a session on a pseudo-terminal of its own.
type terminal struct {
	t      *testing.T
	master *os.File
	told   *bufio.Reader
	orders *os.File
	pid    int // of the job: thole

	mu     sync.Mutex
	screen strings.Builder
	grown  chan struct{}
}

// newTerminal runs thole with the arguments.
func newTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	sandtest.Root(t, "the full sandbox on a terminal")
	bin, self := sandtest.Build(t, tholePackage), sandtest.Self(t)
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	toldR, toldW := pipe(t)
	ordersR, ordersW := pipe(t)
	c := exec.Command(self, append([]string{bin}, args...)...)
	c.Env = []string{roleVar + "=session", "PATH=/usr/bin:/bin", "TERM=xterm"}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.ExtraFiles = []*os.File{toldW, ordersR}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	toldW.Close()
	tm := &terminal{t: t, master: master, told: bufio.NewReader(toldR), orders: ordersW, grown: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			// Read ends with EIO when the last slave is closed.
			n, err := master.Read(buf)
			tm.mu.Lock()
			tm.screen.Write(buf[:n])
			tm.mu.Unlock()
			select {
			case tm.grown <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if tm.pid != 0 && t.Failed() {
			_ = syscall.Kill(-tm.pid, syscall.SIGKILL)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		<-read
		master.Close()
		if t.Failed() {
			t.Logf("screen:\n%s", tm.text())
		}
	})
	if _, err := fmt.Sscanf(tm.tell(), "pid %d", &tm.pid); err != nil {
		t.Fatal(err)
	}
	return tm
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (tm *terminal) text() string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.screen.String()
}

// shows waits until the screen holds text.
func (tm *terminal) shows(text string) {
	tm.t.Helper()
	end := time.After(patience)
	for !strings.Contains(tm.text(), text) {
		select {
		case <-tm.grown:
		case <-end:
			tm.t.Fatalf("the screen never showed %q", text)
		}
	}
}

// tell returns what the session says next.
func (tm *terminal) tell() string {
	tm.t.Helper()
	line, err := tm.told.ReadString('\n')
	if err != nil {
		tm.t.Fatalf("the session said %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (tm *terminal) types(s string) {
	tm.t.Helper()
	if _, err := tm.master.WriteString(s); err != nil {
		tm.t.Fatal(err)
	}
}

// counted has the program count, and wants its status from thole.
func (tm *terminal) counted(want string) {
	tm.t.Helper()
	if err := syscall.Kill(tm.pid, unix.SIGUSR1); err != nil {
		tm.t.Fatal(err)
	}
	tm.shows("counts " + want)
	if got := tm.tell(); got != "exit 5" {
		tm.t.Errorf("thole: %s", got)
	}
}

func signals(t *testing.T) *terminal {
	t.Helper()
	self := sandtest.Self(t)
	tm := newTerminal(t, "run", "-q", "--ro", self, "--env", roleVar+"=signals", "--", self)
	tm.shows("ready ")
	return tm
}

// TestInterrupt: Ctrl-C reaches the program once, and a program that handles
// it goes on.
func TestInterrupt(t *testing.T) {
	tm := signals(t)
	tm.types("\x03")
	tm.shows("got SIGINT")
	tm.counted("INT=1 TERM=0 WINCH=0")
}

// TestInterruptEnds: a program that Ctrl-C ends gives thole its status.
func TestInterruptEnds(t *testing.T) {
	tm := newTerminal(t, "run", "-q", "--", "sh", "-c", "echo ready; exec sleep 1000")
	tm.shows("ready")
	tm.types("\x03")
	if got := tm.tell(); got != "exit 130" {
		t.Errorf("thole: %s", got)
	}
}

// TestWindow: a changed window is told once.
func TestWindow(t *testing.T) {
	tm := signals(t)
	if err := unix.IoctlSetWinsize(int(tm.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}); err != nil {
		t.Fatal(err)
	}
	tm.shows("got SIGWINCH")
	tm.counted("INT=0 TERM=0 WINCH=1")
}

// TestTerminate: what is sent to thole alone is passed on.
func TestTerminate(t *testing.T) {
	tm := signals(t)
	if err := syscall.Kill(tm.pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	tm.shows("got SIGTERM")
	if err := syscall.Kill(tm.pid, unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	// In the foreground a terminal's signal comes from the terminal.
	tm.counted("INT=0 TERM=1 WINCH=0")
}

// TestStop: Ctrl-Z stops both, and a shell's fg continues both.
func TestStop(t *testing.T) {
	tm := signals(t)
	var pid int
	if _, err := fmt.Sscanf(tm.text()[strings.Index(tm.text(), "ready "):], "ready %d", &pid); err != nil {
		t.Fatal(err)
	}
	tm.types("\x1a")
	if got := tm.tell(); got != "stopped" {
		t.Fatalf("thole: %s", got)
	}
	end := time.Now().Add(patience)
	for state(t, pid) != "T" {
		if time.Now().After(end) {
			t.Fatalf("the program is in state %s", state(t, pid))
		}
	}
	if _, err := tm.orders.WriteString("continue\n"); err != nil {
		t.Fatal(err)
	}
	if got := tm.tell(); got != "continued" {
		t.Fatalf("thole: %s", got)
	}
	tm.types("\x03")
	tm.shows("got SIGINT")
	tm.counted("INT=1 TERM=0 WINCH=0")
}

// state returns the letter of proc_pid_stat(5).
func state(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	return string(b[strings.LastIndexByte(string(b), ')')+2:][:1])
}
