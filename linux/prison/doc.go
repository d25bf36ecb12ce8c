// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Package prison tests sandboxes from the inside: a table of forbidden acts and
// one of permitted ones, each with what must come of it as root and as an
// ordinary user, for each network mode. It holds no code of its own.
//
// The tables are testdata/*.txt. A line is
//
//	act and its words => outcome; where: outcome; where, where: outcome
//
// The first outcome holds wherever no other is named. A place is a start
// ("root/none", "user/any"), or all starts of one kind of caller ("root",
// "same", "user", "bare"), or all of one mode ("*/any"); a start's own name comes
// first, then its mode, then the kind, and "bare" without a word of its own is
// as "user", "same" as "root". An outcome is
//
//	allowed           done, or failed past every check
//	allowed E1/E2     failed past every check with that error
//	denied E1/E2      refused with one of these errors
//	absent E1/E2      not there
//	anything else     what the act saw
//	-                 does not apply
//
// and may be followed by "at STEP", where an earlier step than the act itself
// ends it. Outcomes between | are equally good. "allowed ?CAPABILITY" is
// allowed only if that start's list of gaps names the capability: what cannot
// be had may be missing, but never silently. "@name" stands for the line
// "@name => ..." of the same file. {words} in braces are filled in by the test,
// and LEAF is the job's own cgroup below the mount.
package prison
