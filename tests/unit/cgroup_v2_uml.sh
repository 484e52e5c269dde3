#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test program on a machine that has nothing but cgroup v2, with all its controllers: a user-mode-linux kernel
# over this machine's own files (read only), needing neither root nor virtualisation.
#   cgroup_v2_uml.sh PROGRAM
# Skips (exit code 77) where there is no such kernel.
set -eu
program=$(realpath "$1")
uml=$(command -v linux.uml || true)
if [ -z "$uml" ]; then
    echo "SKIPPED: cgroup v2 alone is not tested here: linux.uml is missing (apt-get install user-mode-linux)"
    exit 77
fi
if ldd "$program" | grep -q 'lib[at]san'; then
    echo "SKIPPED: a program with a sanitizer does not run under user-mode-linux"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cat >"$work/init" <<INIT
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o mode=755 dev /dev
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/zero c 1 5
mknod -m 666 /dev/full c 1 7
mknod -m 666 /dev/urandom c 1 9
ln -s /proc/self/fd /dev/fd
mount -t tmpfs -o mode=1777 tmp /var/tmp
mount --bind /tmp /mnt
mount -t tmpfs -o mode=1777 tmp /tmp
case "$program" in
/tmp/*) # what was built there stays in reach
    part=\$(echo "$program" | cut -d/ -f3)
    mkdir "/tmp/\$part"
    mount --bind "/mnt/\$part" "/tmp/\$part"
    ;;
esac
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
cd /
"$program"
echo "RESULT \$?"
echo o >/proc/sysrq-trigger
sleep 10
INIT
chmod 755 "$work" "$work/init"
timeout -k 5 280 "$uml" mem=1024M rootfstype=hostfs rootflags=/ ro init="$work/init" con=null con0=null,fd:1 quiet \
    </dev/null >"$work/log" 2>&1 || true
cat "$work/log"
grep -q '^RESULT 0' "$work/log"
