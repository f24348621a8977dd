#!/bin/sh
# Brings the database to this version's schema and the accounts to what their
# Secrets say. What was done is remembered beside the database, as a digest:
# while image and Secrets are the same, a start costs nothing.
set -eu

marker=/data/prepared
wanted=$({ echo "$GITEA_IMAGE"; cat /etc/gitea/accounts/*/* /etc/gitea/conf/prepare.sh; } | sha256sum)
if [ -s /data/gitea.db ] && [ "$(cat "$marker" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi

# account <folder> [flag…]: the folder holds username, password and email. Gitea
# takes a password from its command line only; nothing outside this container
# sees that.
account() {
  from=$1
  shift
  name=$(cat "$from/username")
  if gitea admin user list | grep -Eq "^[0-9]+ +$name +"; then
    gitea admin user change-password --username "$name" --password "$(cat "$from/password")" \
      --must-change-password=false
  else
    gitea admin user create --username "$name" --password "$(cat "$from/password")" \
      --email "$(cat "$from/email")" --must-change-password=false "$@"
  fi
}

gitea migrate
account /etc/gitea/accounts/administrator --admin
account /etc/gitea/accounts/robot
account /etc/gitea/accounts/reader
(umask 077 && echo "$wanted" >"$marker.new" && mv "$marker.new" "$marker")
