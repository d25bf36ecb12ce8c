// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"slices"
	"strings"
)

// passed are the variables that a program gets without being asked for: how to
// talk to the person, nothing else.
var passed = []string{"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES"}

// loaders make programs load or run code, or change which files they read:
// they pass only when they are named one by one.
var loaders = []string{
	"LD_", "DYLD_", "GLIBC_", "MALLOC_", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
	"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_", "NODE_EXTRA_CA_CERTS", "npm_config_",
	"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONINSPECT", "PYTHONBREAKPOINT",
	"PERL5", "PERLLIB", "PERLIO", "RUBYLIB", "RUBYOPT", "GEM_", "BUNDLE_", "PHPRC", "PHP_INI_SCAN_DIR", "LUA_",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "MAVEN_OPTS", "GRADLE_OPTS",
	"BASH_ENV", "BASH_FUNC_", "BASHOPTS", "SHELLOPTS", "ENV", "ZDOTDIR", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE",
	"GIT_", "SSH_", "GPG_", "DBUS_", "XDG_", "DISPLAY", "WAYLAND_", "DOCKER_", "CONTAINER_", "KUBECONFIG",
	"EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "MANPAGER", "TERMINFO", "TERMCAP", "GOFLAGS", "GOENV", "GODEBUG", "GORACE",
	"RUSTC_WRAPPER", "CARGO_", "MAKEFLAGS", "MFLAGS", "OPENSSL_", "SSLKEYLOGFILE", "CURL_HOME", "OARBANK_CONFINED", "TMPDIR", "HOME", "PWD", "OLDPWD", "SHLVL", "_",
}

// loads reports whether the variable is one of the loaders. An entry that ends
// in "_" covers every name that begins with it.
func loads(name string) bool {
	for _, l := range loaders {
		if name == l || strings.HasSuffix(l, "_") && len(l) > 1 && strings.HasPrefix(name, l) || (l == "PERL5" && strings.HasPrefix(name, l)) {
			return true
		}
	}
	return false
}

// environ makes the program's environment. path is its PATH, home and tmp are
// its private directories.
func environ(caller []string, keep bool, named []string, path, home, tmp string) []string {
	env := map[string]string{}
	var order []string
	set := func(k, v string) {
		if _, ok := env[k]; !ok {
			order = append(order, k)
		}
		env[k] = v
	}
	get := func(name string) (string, bool) {
		for _, kv := range caller {
			if k, v, ok := strings.Cut(kv, "="); ok && k == name {
				return v, true
			}
		}
		return "", false
	}
	set("PATH", path)
	set("HOME", home)
	set("TMPDIR", tmp)
	for _, kv := range caller {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "PATH" {
			continue
		}
		if keep && !loads(k) || strings.HasPrefix(k, "LC_") || slices.Contains(passed, k) {
			set(k, v)
		}
	}
	for _, n := range named {
		k, v, ok := strings.Cut(n, "=")
		if !ok {
			if v, ok = get(k); !ok {
				continue
			}
		}
		set(k, v)
	}
	out := make([]string, 0, len(order))
	for _, k := range order {
		out = append(out, k+"="+env[k])
	}
	return out
}

// defaultPath is the PATH of a program whose caller has none of use.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// searchPath keeps of the caller's PATH what the program can execute.
func searchPath(caller string, executable func(dir string) bool) string {
	var keep []string
	for _, d := range filepath.SplitList(caller) {
		if filepath.IsAbs(d) && executable(d) && !slices.Contains(keep, d) {
			keep = append(keep, d)
		}
	}
	if len(keep) == 0 {
		return defaultPath
	}
	return strings.Join(keep, ":")
}
