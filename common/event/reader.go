// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// A Reader reads records from a stream of lines. It may not be used by two
// goroutines at once.
type Reader struct {
	r    *bufio.Reader
	line int
}

// A LineError is a line that is not a record.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error returns "line N: message".
func (e *LineError) Error() string { return "line " + strconv.Itoa(e.Line) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 32<<10)} }

// Line is the number of the line that Next read last, from 1.
func (r *Reader) Line() int { return r.line }

// Next returns the next record, or io.EOF after the last. A *LineError about
// one line (it matches ErrInvalid or ErrTooLong) does not end the stream: the
// next call reads the line after it. Any other error is r's own, with the
// line, and is final.
func (r *Reader) Next() (Event, error) {
	line, err := r.read()
	if err == io.EOF {
		return Event{}, err
	}
	if err != nil {
		return Event{}, &LineError{r.line, err}
	}
	e, err := Parse(line)
	if err != nil {
		return Event{}, &LineError{r.line, err}
	}
	return e, nil
}

// read returns one line without its newline. The last line may lack one.
// Beyond MaxLine it reads on to the newline, keeping nothing.
func (r *Reader) read() ([]byte, error) {
	var line []byte
	long := false
	for first := true; ; first = false {
		part, err := r.r.ReadSlice('\n')
		if first && (len(part) > 0 || err != io.EOF) {
			r.line++
		}
		if long = long || len(line)+len(part) > MaxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(part) == 0 && first:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, err
		case long:
			return nil, ErrTooLong
		}
		return bytes.TrimSuffix(line, []byte{'\n'}), nil
	}
}
