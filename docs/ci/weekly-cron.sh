#!/bin/sh
# Analyse all studies and render last week against the weeks before; the site is a folder that any web server shows.
# In the crontab, Monday 04:17 (cron's time zone):
#   17 4 * * 1  STUDIES=/data/studies RESULTS=/data/results SITE=/var/www/energy /usr/local/bin/weekly-cron.sh
# cron mails what is printed: nothing is, unless a study failed or something got worse.
set -u
: "${STUDIES:?folder of the studies}" "${RESULTS:?folder for stores and reports}" "${SITE:?folder of the site}"
JOULEBOOK="${JOULEBOOK:-joulebook}"
WEEK="${WEEK:-$(date -u -d 'last week' +%G-W%V)}"

# Two jobs at a time would write the same stores: the second one waits for an hour at most, then gives up.
if command -v flock >/dev/null && [ -z "${WEEKLY_LOCKED:-}" ]; then
    mkdir -p "$RESULTS"
    WEEKLY_LOCKED=1 exec flock -w 3600 "$RESULTS/.weekly.lock" "$0" "$@"
fi

status=0
said=$("$JOULEBOOK" run "$STUDIES/*" -o "$RESULTS" -q "$@" 2>&1) || { status=$?; printf '%s\n' "$said"; }

said=$("$JOULEBOOK" weekly "$RESULTS/*/study.duckdb" --week "$WEEK" -o "$SITE" --fail-on regression -q 2>&1)
case $? in
    0) ;;
    3) printf '%s\n' "$said"; status=3 ;;
    *) printf '%s\n' "$said"; status=1 ;;
esac
exit "$status"
