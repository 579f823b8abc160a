#compdef harness
_harness_completion() {
    local found value
    for found in "${(@f)$(_HARNESS_COMPLETE="${words[1,CURRENT]}" $words[1] 2>/dev/null)}"; do
        value=${found%%$'\t'*}
        [[ -n $value ]] && compadd -Q -S "${${value[-1]:#[=/]}:+ }" -- "$value"
    done
    (( compstate[nmatches] )) || _files
}
compdef _harness_completion harness
