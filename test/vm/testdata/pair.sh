# pair.sh NODE FOLDER PROGRAMS   runs in each of two machines, after each other's tests: jobs of which one rank is on each.
# Node 0 has Hydra start them; what Hydra would have a remote shell do on node 1 it leaves in FOLDER, which both see.
node=$1 folder=$2 programs=$3
awaited() { while [ ! -e "$1" ]; do sleep 0.05; done; }
if [ "$node" = 1 ]; then
	for job in hello kmer heat; do
		awaited "$folder/$job.command"
		bash "$folder/$job.command" </dev/null
		echo $? >"$folder/$job.new"
		mv "$folder/$job.new" "$folder/$job.status"
	done
	exit
fi
cat >/tmp/remote <<'END'
#!/bin/bash
# As ssh: [-x] HOST WORD..., which a shell there puts together again. The command's output is Hydra's business.
while [[ $1 = -* ]]; do shift; done
echo "cd $(printf %q "$PWD"); ${*:2}" >"$FOLDER/$JOB.text"
mv "$FOLDER/$JOB.text" "$FOLDER/$JOB.command"
while [ ! -e "$FOLDER/$JOB.status" ]; do sleep 0.05; done
exit "$(cat "$FOLDER/$JOB.status")"
END
chmod +x /tmp/remote
export FOLDER=$folder JOB
# On a wire between two emulated machines an answer may take a second, which is no death.
export PGAS_FAILURE_TIMEOUT=60s
across() { # across JOB ARGUMENT...
	JOB=$1
	local began=$SECONDS status
	echo "=== part $1"
	mpiexec.hydra -launcher ssh -launcher-exec /tmp/remote -iface eth0 -hosts 10.9.1.1,10.9.1.2 -n 2 "$programs/$1.run" "${@:2}" 2>&1
	status=$?
	echo "took $((SECONDS - began)) s"
	echo "=== ended $1 $status"
}
across hello
across kmer "$programs/genome.fa"
across heat -rows 64 -cols 64 -steps 20
