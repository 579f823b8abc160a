# bash also splits words at `=` and `:`, and replaces only the part after the last of these characters
_harness_completion() {
    local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]}
    local word=${line##*[[:space:]]}
    [[ $current == [=:] ]] && current=
    local kept=${word%"$current"}
    COMPREPLY=( $(_HARNESS_COMPLETE="$line" "$1" 2>/dev/null | cut -f 1) )
    COMPREPLY=( "${COMPREPLY[@]#"$kept"}" )
    [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *[=/] ]] && compopt -o nospace
}
complete -o default -F _harness_completion harness
