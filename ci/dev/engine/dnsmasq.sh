#!/bin/sh
exec /usr/sbin/dnsmasq --bind-dynamic --local=/dagger.local/ "$@"
