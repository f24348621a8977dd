set -eu
files=$1 lowers=$2 work=$3 merged=$4 cache=$5 before=$6 after=$7
shift 7
mount -t overlay overlay -o "lowerdir=$lowers,upperdir=$files,workdir=$work,redirect_dir=off,metacopy=off,index=off" "$merged"
mount -t proc proc "$merged/proc"
mount --rbind /dev "$merged/dev"
for dir in tmp run var/log var/cache; do mount -t tmpfs tmpfs "$merged/$dir"; done
chmod 1777 "$merged/tmp"
mkdir -p "$merged/var/cache/debconf" "$merged/var/cache/apt" "$merged/var/log/apt" "$merged/run/keyrings" \
	"$merged/var/lib/apt/lists" "$cache/lists/partial" "$cache/apt/archives/partial"
mount --bind "$cache/lists" "$merged/var/lib/apt/lists"
mount --bind "$cache/apt" "$merged/var/cache/apt"
for key in "$cache/keyrings/"*; do
	[ ! -e "$key" ] || cp "$key" "$merged/run/keyrings/"
done
cp /etc/resolv.conf "$merged/etc/resolv.conf"
cp "$cache/sources.list" "$merged/etc/apt/sources.list.d/slipway.list"
printf '#!/bin/sh\nexit 101\n' > "$merged/usr/sbin/policy-rc.d"
chmod 755 "$merged/usr/sbin/policy-rc.d"
apt() {
	chroot "$merged" apt-get -q -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
		-o Acquire::Languages=none -o Acquire::Retries=5 -o Dpkg::Use-Pty=0 "$@"
}
if [ ! -e "$cache/updated" ]; then
	apt update
	touch "$cache/updated"
fi
chroot "$merged" /bin/sh -euc "$before"
[ $# -eq 0 ] || apt install -y --no-install-recommends "$@"
chroot "$merged" /bin/sh -euc "$after"
rm "$merged/usr/sbin/policy-rc.d" "$merged/etc/resolv.conf" "$merged/etc/apt/sources.list.d/slipway.list"
