// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package prison_test

// Programs that some of the works need.
const (
	bash   = "/bin/bash"
	flock  = "/usr/bin/flock"
	gcc    = "/usr/bin/gcc"
	getent = "/usr/bin/getent"
	git    = "/usr/bin/git"
	golang = "/usr/local/go/bin/go"
	javac  = "/usr/bin/javac"
	maker  = "/usr/bin/make"
	node   = "/usr/bin/node"
	perl   = "/usr/bin/perl"
	ps     = "/usr/bin/ps"
	python = "/usr/bin/python3"
	sqlite = "/usr/bin/sqlite3"

	// loader is the dynamic loader, which runs any program that it may map.
	loader = "/lib64/ld-linux-x86-64.so.2"

	gitID = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org GIT_CONFIG_NOSYSTEM=1; `
)

// shellWorks need a shell and the usual small programs.
var shellWorks = []work{
	{name: "pipeline", script: `printf 'b\na\n' | sort | tr a-z A-Z | xargs echo`, out: "A B"},
	{name: "loop", script: `for i in 1 2 3; do echo $i; done | while read x; do echo $((x * x)); done`, out: "1 4 9"},
	{name: "exit code", script: `exit 7`, code: 7},
	{name: "signal status", script: `kill -9 $$`, code: 137},
	{name: "signal to a child", script: `sleep 100 & kill $!; wait $! 2>/dev/null; echo $?`, out: "143"},
	{name: "trap", script: `trap 'echo got' USR1; kill -USR1 $$; echo on`, out: "got on"},
	{name: "stop and continue", script: `sleep 100 & kill -STOP $! && kill -CONT $! && kill $!; wait $! 2>/dev/null; echo $?`, out: "143"},
	{name: "process group", needs: []string{bash}, script: `bash -c 'set -m; sleep 100 & kill -TERM -- -$!; wait $!; echo $?' 2>/dev/null`, out: "143"},
	{name: "umask", script: `umask 077; touch f; stat -c %a f`, out: "600"},
	{name: "modes and times", script: `touch f; chmod 640 f; stat -c %a f; touch -d @1 f; stat -c %Y f`, out: "640 1"},
	{name: "mktemp", script: `f=$(mktemp) && echo x >$f && cat $f && d=$(mktemp -d) && ls -A $d`, out: "x"},
	{name: "home", script: `cd && echo x >f && cat f && test "$PWD" = "$HOME" && test -O . && echo mine`, out: "x mine"},
	{name: "find and sed", script: `mkdir -p a/b; echo one >a/b/f; sed -i s/one/two/ a/b/f; find . -type f -exec cat {} +`, out: "two"},
	{name: "dd", script: `dd if=/dev/zero of=f bs=1M count=8 status=none && stat -c %s f; dd if=/dev/zero of=/dev/full bs=1 count=1 status=none 2>/dev/null || echo full`, out: "8388608 full"},
	{name: "tar", script: `mkdir d; echo x >d/f; ln -s f d/l; tar czf t.tgz d && rm -r d && tar xzf t.tgz && cat d/l`, out: "x"},
	{name: "hard links", script: `echo x >a; ln a b; stat -c %h a; rm a; cat b`, out: "2 x"},
	{name: "getent", needs: []string{getent}, script: `getent passwd root | cut -d: -f1; getent group root | cut -d: -f1; getent hosts localhost | grep -c localhost`, out: "root root 1"},
	{name: "here document", script: "cat <<E\nx\nE\n", out: "x"},
	{name: "process substitution", needs: []string{bash}, script: `bash -c 'cat <(echo x) <(echo y)'`, out: "x y"},
	{name: "big pipe", script: `head -c 104857600 /dev/zero | cat | wc -c`, out: "104857600"},
	{name: "many processes", script: `i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; echo $i`, out: "200"},
	{name: "own processes", needs: []string{ps}, script: `ps -o comm= -p $$`, out: "sh"},
	{name: "file lock", needs: []string{flock}, script: `flock l -c 'echo held'`, out: "held"},
	{name: "time zone", script: `TZ=UTC date -d @0 +%Y`, out: "1970"},
	{name: "fifo", script: `mkfifo p; echo x >p & cat p; wait`, out: "x"},
	{name: "script by its interpreter", script: `printf '#!/bin/sh\necho ran\n' >s; chmod +x s; ./s 2>/dev/null; echo $?; sh s`, out: "126 ran"},
	{name: "loader", needs: []string{loader}, script: `cp /bin/true t && ` + loader + ` ./t 2>/dev/null; echo $?; cp /bin/true "$TMPDIR/t"; ` + loader + ` "$TMPDIR/t" 2>/dev/null; echo $?`, out: "127 127", viewOnly: true},
	{name: "loader, executable", needs: []string{loader}, flags: []string{"--exec-writable"}, script: `cp /bin/true t && ` + loader + ` ./t; echo $?`, out: "0"},
	{name: "exit status of a missing program", script: `no-such-program 2>/dev/null; echo $?`, out: "127"},
	{name: "background work ends with the job", script: `sleep 1000 & echo on`, out: "on"},
}

// programWorks need compilers, interpreters and the like.
var programWorks = []work{
	{name: "perl", needs: []string{perl}, script: `perl -e 'use File::Temp; my $f = File::Temp->new; print $f "x"; if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\n" } else { exit 3 }'`, out: "3"},
	{name: "sqlite", needs: []string{sqlite}, script: `sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values(7); select x from t;'`, out: "wal 7"},
	{name: "python", needs: []string{python}, script: `/usr/bin/python3 -c '
import tempfile, subprocess, threading, ctypes
with tempfile.NamedTemporaryFile("w+") as f: f.write("x"); f.seek(0); print(f.read(), flush=True)
print(subprocess.run(["echo", "sub"], capture_output=True, text=True).stdout.strip())
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
print(ctypes.CDLL(None).abs(-4))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1); print(call(6))
'`, out: "x sub thread 4 7"},
	{name: "python sqlite3", needs: []string{python}, script: `/usr/bin/python3 -c '
import sqlite3
c = sqlite3.connect("p.db"); c.execute("create table t(x)"); c.execute("insert into t values(5)"); c.commit()
print(c.execute("select x from t").fetchone()[0])
'`, out: "5"},
	{name: "python asyncio", needs: []string{python}, script: `/usr/bin/python3 -c '
import asyncio, socket
async def main():
    p = await asyncio.create_subprocess_exec("echo", "async", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip())
    a, b = socket.socketpair()
    r, w = await asyncio.open_connection(sock=a)
    b.sendall(b"pair\n"); print((await r.readline()).decode().strip()); w.close(); b.close()
asyncio.run(main())
'`, out: "async pair"},
	// Its semaphores and arrays are files of /dev/shm, which a job without a
	// view has none of; its queues and pools are pipes.
	{name: "python multiprocessing", needs: []string{python}, script: `cat >mp.py <<'E'
import multiprocessing as mp
def f(x): return x * x
def g(s, q):
    with s: q.put(6)
if __name__ == "__main__":
    s, q = mp.Semaphore(1), mp.Queue()
    p = mp.Process(target=g, args=(s, q)); p.start(); print(q.get()); p.join()
    with mp.Pool(2) as pool: print(sum(pool.map(f, [1, 2, 3])))
    m = mp.Array("i", [4, 5]); print(m[1])
E
/usr/bin/python3 mp.py`, out: "6 14 5", viewOnly: true},
	{name: "node", needs: []string{node}, script: `node -e '
const cp = require("child_process"), fs = require("fs"), os = require("os"), path = require("path");
fs.writeFileSync("f", "file"); console.log(fs.readFileSync("f", "utf8"));
console.log(cp.execSync("echo sync").toString().trim());
const d = fs.mkdtempSync(path.join(os.tmpdir(), "x")); fs.rmdirSync(d);
const { Worker } = require("worker_threads");
new Worker("require(\"worker_threads\").parentPort.postMessage(\"worker\")", { eval: true }).on("message", (m) => {
  console.log(m);
  const c = cp.spawn("cat", { stdio: ["pipe", "inherit", "inherit"] });
  c.on("close", () => fs.promises.readFile("f", "utf8").then((x) => console.log(x)));
  c.stdin.end("spawn\n");
});'`, out: "file sync worker spawn file"},
	{name: "git", needs: []string{git}, script: gitID + `git init -q -b trunk r && cd r && echo x >f && git add f && git commit -qm one && git log --format=%s &&
git checkout -qb b && git branch --format='%(refname:short)' && git gc -q && cd .. && git clone -q r s && cat s/f && git -C s fsck 2>/dev/null`, out: "one b trunk x"},
	{name: "git beside an outbox", needs: []string{git}, outbox: true, script: gitID + `git init -q r && cd r && echo x >f && git add f && git commit -qm one && git gc -q && cd .. && git clone -q r s && cat s/f`, out: "x"},
	{name: "make", needs: []string{maker}, script: "printf 'all: a b\\na b:\\n\\t@echo $@ > $@\\n' >Makefile; make -s -j2 && cat a b", out: "a b"},
	{name: "gcc", needs: []string{gcc}, flags: []string{"--exec-writable"}, script: `cat >h.c <<'E'
#include <pthread.h>
#include <stdio.h>
static void *f(void *x) { return x; }
int main(void) { pthread_t t; void *r; pthread_create(&t, 0, f, "made"); pthread_join(t, &r); puts(r); return 0; }
E
gcc -O1 -pthread -o h h.c && ./h && cp h "$TMPDIR" && "$TMPDIR/h"`, out: "made made"},
	{name: "gcc, not executable", needs: []string{gcc}, script: `echo 'int main(void) { return 0; }' >h.c && gcc -o h h.c && test -s h && ./h 2>/dev/null; echo $?`, out: "126"},
	{name: "java", needs: []string{javac}, slow: true, script: `cat >H.java <<'E'
public class H { public static void main(String[] a) throws Exception {
  Thread t = new Thread(() -> System.out.println("thread")); t.start(); t.join();
  System.out.println(new String(new ProcessBuilder("echo", "child").start().getInputStream().readAllBytes()).trim());
  java.nio.file.Path p = java.nio.file.Files.createTempFile("x", "y"); System.out.println(java.nio.file.Files.exists(p)); } }
E
javac H.java && java H`, out: "thread child true"},
	{name: "go", needs: []string{golang}, slow: true, flags: []string{"--exec-writable"}, script: `export PATH=/usr/local/go/bin:$PATH GOCACHE=$PWD/cache GOMODCACHE=$PWD/mod GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0
printf 'module example.org/h\n\ngo 1.20\n' >go.mod
printf 'package main\n\nfunc main() { println("hello") }\n' >main.go
go build -o h . && ./h`, out: "hello"},
}
