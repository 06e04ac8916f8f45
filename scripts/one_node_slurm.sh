#!/bin/sh
# A Slurm cluster of one node on this machine, to try backend=slurm on the real thing. As root, on Debian:
#
#   apt-get install slurmctld slurmd slurm-client munge
#   sh scripts/one_node_slurm.sh
#
# It overwrites /etc/slurm/slurm.conf: for a scratch machine or a container, not for a node of a cluster.
set -eu
state=$(mktemp -d /tmp/one-node-slurm.XXXXXX)
node=$(hostname -s)
mkdir -p "$state/ctld" "$state/d" /run/munge
chown munge:munge /run/munge
pgrep -x munged > /dev/null || runuser -u munge -- munged
cat > /etc/slurm/slurm.conf <<CONF
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/d
SlurmctldPidFile=$state/ctld.pid
SlurmdPidFile=$state/d.pid
SlurmctldLogFile=$state/ctld.log
SlurmdLogFile=$state/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(free -m | awk "/^Mem/ {print \$7}") State=UNKNOWN
PartitionName=main Nodes=$node Default=YES MaxTime=60 State=UP
CONF
slurmctld
slurmd
sleep 3
sinfo
