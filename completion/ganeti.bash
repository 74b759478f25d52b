# Completion of the gnt-* programs for bash. The programs themselves say what may follow.

_ganeti()
{
    local breaks=${COMP_WORDBREAKS//[^=:]/} words=() glue='' i word last found
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        # Bash cuts --format=json and node1:node2 into three words each.
        if [[ $breaks && $word == [$breaks]* && ${#words[@]} -gt 0 ]]; then
            words[-1]+=$word glue=yes
        elif [[ $glue ]]; then
            words[-1]+=$word glue=''
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    found=$("${1##*/}" --complete "${words[@]}" 2>/dev/null) || return 0
    if [[ $found == '<file>' ]]; then
        compopt -o default 2>/dev/null
        return 0
    fi
    [[ $found ]] && mapfile -t COMPREPLY <<<"$found"
    # Only what comes after the last place where bash cuts is replaced.
    last=${words[-1]}
    if [[ $breaks && $last == *[$breaks]* ]]; then
        last=${last%"${last##*[$breaks]}"}
        COMPREPLY=("${COMPREPLY[@]#"$last"}")
    fi
    # More of the word may follow.
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -F _ganeti gnt-{backup,cluster,debug,disk,filter,group,image,instance,job,network,node,os,rapi,storage}
