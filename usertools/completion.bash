# SPDX-License-Identifier: BSD-3-Clause
# Completion in bash for the programs of sanstack. Commands, options and the words that they take come
# from --help of the program itself.

_sanstack() {
	local program=$1 word=$2 before=$3 name=${1##*/} given help words

	COMPREPLY=()
	help=$("$program" --help 2>/dev/null)
	words=$(sed -nE 's/^    ([a-z]+)  .*/\1/p; s/^(usage:|      ) sansock ([a-z]+).*/\2/p' <<<"$help")
	for given in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		grep -qxF -e "$given" <<<"$words" || continue
		words=
		[ "$name" != sanctl ] || help=$("$program" "$given" --help 2>/dev/null)
	done
	case $name:$before in
	sansock:run | sansock:explain) words=$(compgen -c -- "$word") ;;
	sanctl:conn | sanctl:stream | sanctl:why | sanctl:--cid)
		words=$("$program" conns 2>/dev/null | grep -oE '^0x[0-9a-f]+')
		;;
	sansim:--set)
		words=$("$program" --keys | awk '/^\[/ {section = substr($1, 2, length($1) - 2)}
			/^# [a-z_]+ =/ {print section "." $2 "="}')
		compopt -o nospace 2>/dev/null
		;;
	*:-*)
		# a list as in "(auto, always or never)", or a value of another kind: bash completes files
		given=$(sed -nE "s/^ +$before [A-Z]+ .*\(([a-z, -]+)\).*/\1/p" <<<"$help")
		if [[ $given =~ ^([a-z-]+,\ )*[a-z-]+\ or\ [a-z-]+$ ]]; then
			words=${given//,/}
			words=${words/ or / }
		elif grep -qE -e "(^|[ ,[])$before [A-Z]" <<<"$help"; then
			return
		else
			words+=" $(grep -oE -e '--[a-z][a-z-]+' <<<"$help")"
		fi
		;;
	*) words+=" $(grep -oE -e '--[a-z][a-z-]+|\{[a-z,]+\}' <<<"$help" | tr '{,}' '   ')" ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}

complete -o bashdefault -o default -F _sanstack sanbench sanctl sansim sansock sanstack-daemon
