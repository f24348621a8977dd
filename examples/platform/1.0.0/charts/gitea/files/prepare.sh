#!/bin/sh
# Brings the database to this version's schema and the accounts to what their
# Secrets say. Running it again changes nothing but repairs both.
set -eu

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
