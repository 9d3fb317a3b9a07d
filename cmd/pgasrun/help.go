package main

const helpText = `pgasrun starts a program as the ranks of one job, on this machine or on several.

usage: pgasrun [flags] PROGRAM [the program's own arguments]
       pgasrun info

PROGRAM is a binary (with a slash in its name a path, without one it is searched in PATH), a folder with a Go package, an
import path, or a .go file; Go code is built first.

  -n, -np N             number of ranks (default 1); -n4 will do
  -l, --label           put the rank's number before every line it prints
  --prefix PATTERN      put PATTERN before every line: %r rank, %n ranks, %h host, %j job, %s out or err, %t time; %3r is 007
  -o, --output PATTERN  the ranks' output goes to files instead of here: -o 'out.%r'; without %r all share one
  -e, --error PATTERN   files for their standard error; without it -o takes that too
  --tee                 to the files and here as well
  --only RANKS          show the output of these ranks here, such as 0,3-5, or none; files get that of all
  --stdin WHO           who reads the standard input: a rank, "all" or "none" (default 0); the others read /dev/null.
                        With "all" each reads at its own pace, but none gets more than 16 MiB ahead of one that does not read
  -x VAR, -x VAR=VALUE  environment of the ranks: hand VAR on although it looks like another launcher's, or set it
  --wdir FOLDER         working folder of the ranks (default: this one), on every host

  -H, -host, --hosts LIST  run on these hosts, such as a:32,b:32; without -n as many ranks as the numbers say. The first host has the first
                        ranks. Without numbers -n ranks are shared equally, or each host takes --ppn, or one
  --hostfile, --machinefile FILE  the same from a file: HOST, HOST:RANKS or HOST slots=RANKS a line, and # comments
  --ppn N               ranks of each host that has no number
  --launcher HOW        how hosts are reached: ssh (default; this machine itself without), fork (all are this machine, for a try) or srun
                        (within a Slurm allocation, whose hosts are taken where none is named)
  --rsh COMMAND         what is called like ssh instead: --rsh 'ssh -p 2222 -i key'
  --agent-path PATH     where pgasrun is on the hosts (default: where it is here)

  --bind-to WHAT        bind each rank to a core or to a numa node; none is the default
  --report-bindings     say which processors each rank may use
  --wrap RANKS:COMMAND  run these ranks under COMMAND: --wrap 0:'dlv exec --'. It reads the standard input (one rank, no --stdin),
                        which, if it is the terminal, it has for itself; its output is shown as it comes, and INT goes to it alone

  --timeout TIME        after TIME (30s, 5m, or seconds) say what every rank waits for and end the job with code 124; Go ranks that
                        wait for nothing, so compute, print their stacks first; 0: no limit
  --grace TIME          time between SIGTERM, ours or one that pgasrun is sent, and SIGKILL (default 2s)
  --no-kill             when a rank fails, let the others run on; they are told

  --stats[=table]       print what each rank moved, by transport and path, to standard error
  --stats=json[:FILE]   the same as one JSON document, to standard error or into FILE
  --serve [HOST]:PORT   show the job on a page while it runs, and to Prometheus at /metrics: on this machine only unless HOST is
                        named; port 0 is any that is free. Ranks count as with --stats
  --trace FILE          write what every rank did when, for https://ui.perfetto.dev: waits, collective calls, transfers of 4 KiB and
                        more and one in 64 of the smaller ones, registrations
  --dry-run             print what would run, and run nothing
  -v, --verbose         say what is started and how each rank ends
  --version             which build of pgasrun this is
  -h, --help, help      this text

Other hosts need this build of pgasrun, the working folder and the program, at the same paths (Go code that was built for this job is
sent), and a login without a password. Their ranks get the environment of that login, the PGAS_ variables of here, and what -x says.

When all ranks have waited for each other for 10 s, pgasrun says once in which calls, and at which lines.

Signals: INT, TERM, HUP, USR1 and USR2 go to the ranks; --grace after a TERM those that run still are killed, and at a second INT
or TERM at once. QUIT (Ctrl-\) prints what every rank waits for and ends nothing; a second QUIT goes to the ranks, which makes
Go programs print their stacks and end. TSTP (Ctrl-Z) stops the ranks and pgasrun, until CONT (fg); a time limit counts that time too.

Exit code: that of the first rank that fails (128+signal if one killed it, 255 if its host was lost), 0 if none does; 124 after the
time limit; 141 when who reads the output has gone, as head does when it has enough: the ranks are told to end then; 126 or 127 if the
program cannot be run or found; 2 for a mistake in the command line or a package that does not compile; 1 where a host cannot be reached.

examples:
  pgasrun -n 4 ./examples/hello
  pgasrun -n 8 -l ./heat -rows 4096
  pgasrun -n 2 --timeout 60s --stats=json:stats.json ./gups
  pgasrun -n 4 --serve :8080 ./heat
  pgasrun -n 3 sh -c 'echo rank $PGAS_RANK of $PGAS_SIZE'
  pgasrun -n 4 ./an-mpich-program
  pgasrun -n 4 -o 'out.%r' --tee --only 0 ./heat
  pgasrun -H node1:32,node2:32 -l ./heat -rows 4096
  pgasrun -n 2 --wrap 1:'gdb --args' ./heat
`

const infoHelp = `pgasrun info prints what this machine offers to a job, where its limits are, and how to raise them.

usage: pgasrun info [--calibrate [--nic NAME] [--write FILE]]

  --calibrate    instead, measure what registered memory costs with a NIC: fits, residuals, copies by size
  --nic NAME     which NIC, as PGAS_TRANSPORT names it; default soft
  --write FILE   write the costs as JSON too, for PGAS_CALIBRATION
`
