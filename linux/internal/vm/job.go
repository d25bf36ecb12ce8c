// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Step is one program that the guest runs, with an empty standard input, in a
// session of its own.
type Step struct {
	Name    string
	Argv    []string
	Dir     string        // "" is /
	Env     []string      // beside PATH, HOME and TMPDIR
	User    uint32        // uid and gid, 0 is root
	Timeout time.Duration // 0: none but the boot's
}

// job is what a boot does.
type job struct {
	Modules []string
	Steps   []Step
}

// jobFile is where the guest finds it.
const jobFile = "job.json"

// Frame is one line of the guest's report. Exactly one of Out, Err, End and
// Last says what it is about.
type Frame struct {
	Step string
	Out  string `json:",omitempty"` // printed on standard output
	Err  string `json:",omitempty"` // printed on standard error
	End  *End   `json:",omitempty"` // the step is over
	Last bool   `json:",omitempty"` // and so is the job
}

// End is how a step ended.
type End struct {
	Code  int    // exit status; 128+n by signal n
	Error string `json:",omitempty"` // why it could not be run, or was killed
	Took  time.Duration
}

// Result is what is known of a step afterwards.
type Result struct {
	Step
	Out, Err string
	// End is nil where the step was not run to its end.
	End *End
}

// OK says whether the step ended with status 0.
func (r *Result) OK() bool { return r.End != nil && r.End.Code == 0 && r.End.Error == "" }

// collect reads frames until the last one. It returns io.ErrUnexpectedEOF
// where the report ends before.
func collect(r io.Reader, steps []Step, seen func(Frame)) ([]Result, error) {
	results := make([]Result, len(steps))
	index := map[string]*Result{}
	for i, s := range steps {
		if index[s.Name] != nil {
			return nil, fmt.Errorf("two steps are named %s", s.Name)
		}
		results[i].Step = s
		index[s.Name] = &results[i]
	}
	d := json.NewDecoder(r)
	for {
		var f Frame
		if err := d.Decode(&f); err == io.EOF {
			return results, io.ErrUnexpectedEOF
		} else if err != nil {
			return results, fmt.Errorf("read guest's report: %w", err)
		}
		if f.Last {
			return results, nil
		}
		res := index[f.Step]
		if res == nil {
			return results, fmt.Errorf("read guest's report: no step %q", f.Step)
		}
		res.Out += f.Out
		res.Err += f.Err
		if f.End != nil {
			res.End = f.End
		}
		if seen != nil {
			seen(f)
		}
	}
}
