#!/bin/bash
keys=$(dirname "$0")/../../run/authorized_keys
echo "$1" > "$keys"
echo "$(wc -l < "$keys") keys"
