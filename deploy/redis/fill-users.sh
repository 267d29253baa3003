#!/bin/sh
# Prints the ACL file of Redis from users.acl. The passwords come from the environment and only their hashes are
# written; Redis knows neither comments nor variables nor joined lines in such a file, so all of that goes.
#
#   REDIS_API_PASSWORD=… REDIS_WORKER_PASSWORD=… REDIS_BEAT_PASSWORD=… REDIS_FINDER_PASSWORD=… \
#   REDIS_FLOWER_PASSWORD=… REDIS_DOCTOR_PASSWORD=… sh fill-users.sh users.acl > /run/redis/users.acl
set -eu
script=
for part in API WORKER BEAT FINDER FLOWER DOCTOR; do
  eval "password=\${REDIS_${part}_PASSWORD:?is required: the password of this part in Redis}"
  hash=$(printf %s "$password" | sha256sum | cut -d' ' -f1)
  script="${script}s/>\${REDIS_${part}_PASSWORD}/#$hash/;"
done
sed -e '/^ *#/d;/^ *$/d' "$1" | sed -e ':join' -e '/\\$/{N;s/ *\\\n */ /;b join' -e '}' -e "$script"
