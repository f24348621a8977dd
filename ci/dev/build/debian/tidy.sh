set -eu
cd "$1"
rm -rf var/cache/* var/log/* var/lib/apt/lists/* run/*
rm -f etc/machine-id var/lib/dbus/machine-id etc/hostname etc/resolv.conf etc/.pwd.lock
rm -f etc/passwd- etc/group- etc/shadow- etc/gshadow- var/lib/dpkg/*-old var/lib/systemd/random-seed
rm -f etc/apt/sources.list etc/apt/sources.list.d/* etc/apt/apt.conf.d/99mmdebstrap
rm -rf etc/ssh/ssh_host_*
mkdir -p var/cache/apt/archives/partial var/lib/apt/lists/partial var/log/apt
