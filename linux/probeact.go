// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// act is one thing that a child of the probe does. Every act is harmless also
// where nothing confines it: it touches files of a probe's directory alone,
// signals with number 0, connects TCP within the machine and UDP without
// sending.
type act struct {
	ID     string
	Op     string
	Path   string // a file, a socket ("@name": abstract) or a device
	Addr   string // address:port
	N      int    // a pid, a number of processes, of milliseconds or MiB
	Nested []act  // what a program that is started does
}

// The operations.
const (
	opRead       = "read"       // open for reading, read a byte
	opList       = "list"       // list a directory
	opStat       = "stat"       // look whether a file is there
	opOpenWrite  = "open-write" // open for writing, write nothing
	opCreate     = "create"     // make a file and write a byte
	opChmod      = "chmod"      // set the mode that the file has
	opTouch      = "touch"      // set both times to now
	opUnlink     = "unlink"
	opRename     = "rename" // to the same name with .new
	opExec       = "exec"   // start the probe's program at a path
	opTCP        = "tcp"    // connect
	opUDP        = "udp"    // connect, which sends no packet
	opListen     = "listen" // a TCP socket, without bind
	opBind       = "bind"   // a TCP socket
	opUnix       = "unix"   // connect a stream socket
	opUnixDgram  = "unix-dgram"
	opSocketpair = "socketpair"
	opKill       = "kill"   // signal 0 to a pid
	opIDs        = "ids"    // the process's uid, as text
	opCgroup     = "cgroup" // its path in the v2 hierarchy, as text
	opDevice     = "device" // open a GPU device for reading and writing
	opFork       = "fork"   // N processes at once
	opBurn       = "burn"   // N milliseconds of processor time
	opAlloc      = "alloc"  // N MiB of memory
	opFact       = "fact"   // none: the probe itself reports it
)

// outcome is what came of an act.
type outcome struct {
	ID    string
	Errno string // the error's name (EPERM); empty: done
	Text  string // what an act found out
}

// lastID ends a child's answer.
const lastID = "end"

// probePrefix begins the name of every directory and abstract socket of a
// probe.
const probePrefix = "thole-doctor-"

// harmless returns an error for an act that could change or reach anything
// that is not a probe's.
func (a act) harmless() error {
	ok := false
	switch a.Op {
	case opRead, opOpenWrite, opCreate, opChmod, opTouch, opUnlink, opRename:
		ok = inProbe(a.Path)
	case opExec:
		ok = inProbe(a.Path)
		for _, n := range a.Nested {
			if err := n.harmless(); err != nil {
				return err
			}
		}
	case opList:
		ok = inProbe(a.Path) || a.Path == "/"
	case opStat:
		ok = inProbe(a.Path) || strings.HasPrefix(a.Path, "/proc/") && path.Clean(a.Path) == a.Path
	case opUnix, opUnixDgram:
		ok = inProbe(a.Path) || strings.HasPrefix(a.Path, "@"+probePrefix)
	case opTCP, opBind:
		ap, err := netip.ParseAddrPort(a.Addr)
		ip := ap.Addr().Unmap()
		ok = err == nil && ip.Zone() == "" && (ip.IsLoopback() || a.Op == opTCP && ip.IsUnspecified())
	case opUDP:
		ap, err := netip.ParseAddrPort(a.Addr)
		ok = err == nil && ap.Addr().Zone() == ""
	case opKill:
		ok = a.N > 1
	case opDevice:
		ok = path.Clean(a.Path) == a.Path && (strings.HasPrefix(a.Path, "/dev/dri/") || strings.HasPrefix(a.Path, "/dev/nvidia") || a.Path == "/dev/kfd")
	case opFork:
		ok = a.N > 0 && a.N <= 64
	case opBurn:
		ok = a.N > 0 && a.N <= 200
	case opAlloc:
		ok = a.N > 0 && a.N <= 128
	case opListen, opSocketpair, opIDs, opCgroup:
		ok = true
	}
	if !ok {
		return fmt.Errorf("act %s: %s of %q is no act of a probe", a.ID, a.Op, a.Path+a.Addr+strconv.Itoa(a.N))
	}
	return nil
}

// inProbe reports whether p is a file in a probe's directory.
func inProbe(p string) bool {
	if !path.IsAbs(p) || path.Clean(p) != p {
		return false
	}
	for seg := range strings.SplitSeq(path.Dir(p), "/") {
		if strings.HasPrefix(seg, probePrefix) {
			return true
		}
	}
	return false
}

// encodeActs is the JSON of a list of acts: an array of objects whose values
// are strings. Nested ones are such a text themselves.
func encodeActs(acts []act) string {
	b := []byte{'['}
	for i, a := range acts {
		if i > 0 {
			b = append(b, ',')
		}
		fields := [][2]string{{"id", a.ID}, {"op", a.Op}, {"path", a.Path}, {"addr", a.Addr}}
		if a.N != 0 {
			fields = append(fields, [2]string{"n", strconv.Itoa(a.N)})
		}
		if len(a.Nested) > 0 {
			fields = append(fields, [2]string{"acts", encodeActs(a.Nested)})
		}
		b = appendRecord(b, fields)
	}
	return string(append(b, ']'))
}

// maxNesting bounds how deep acts start others.
const maxNesting = 3

// parseActs reads what encodeActs writes, strictly, and refuses a list that
// holds an act that is not harmless.
func parseActs(text string) ([]act, error) { return parseActsAt(text, 0) }

func parseActsAt(text string, depth int) ([]act, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("read acts: nested too deep")
	}
	s := scanner{text: text}
	var acts []act
	err := s.array(func() error {
		var a act
		err := s.object(func(key, value string) (err error) {
			switch key {
			case "id":
				a.ID = value
			case "op":
				a.Op = value
			case "path":
				a.Path = value
			case "addr":
				a.Addr = value
			case "n":
				a.N, err = strconv.Atoi(value)
			case "acts":
				a.Nested, err = parseActsAt(value, depth+1)
			default:
				err = fmt.Errorf("unknown key %q", key)
			}
			return err
		})
		if err != nil {
			return err
		}
		acts = append(acts, a)
		return a.harmless()
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, fmt.Errorf("read acts: %w", err)
	}
	return acts, nil
}

// appendOutcome appends o as one line of JSON.
func appendOutcome(b []byte, o outcome) []byte {
	return append(appendRecord(b, [][2]string{{"id", o.ID}, {"errno", o.Errno}, {"text", o.Text}}), '\n')
}

// parseOutcomes reads the lines that a child wrote. It returns what came
// before an error; whole is false where the child did not come to its end.
func parseOutcomes(text string) (out map[string]outcome, whole bool, err error) {
	out = map[string]outcome{}
	for line := range strings.Lines(text) {
		if whole {
			return out, false, fmt.Errorf("read outcomes: text after the end")
		}
		if !strings.HasSuffix(line, "\n") {
			return out, false, nil // it ended in the middle of a line
		}
		var o outcome
		s := scanner{text: strings.TrimSuffix(line, "\n")}
		err = s.object(func(key, value string) error {
			switch key {
			case "id":
				o.ID = value
			case "errno":
				o.Errno = value
			case "text":
				o.Text = value
			default:
				return fmt.Errorf("unknown key %q", key)
			}
			return nil
		})
		if err == nil {
			err = s.end()
		}
		if err == nil && o.ID == "" {
			err = fmt.Errorf("an outcome without id")
		}
		if _, twice := out[o.ID]; err == nil && twice {
			err = fmt.Errorf("%q twice", o.ID)
		}
		if err != nil {
			return out, false, fmt.Errorf("read outcomes: %w", err)
		}
		if o.ID == lastID {
			whole = true
			continue
		}
		out[o.ID] = o
	}
	return out, whole, nil
}
