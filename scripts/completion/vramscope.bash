# SPDX-License-Identifier: Apache-2.0
# Completion for bash: asks the command itself (`vramscope --complete WORD…`).
_vramscope() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} line word
    local -a words=()
    # bash cuts --option=value into three words.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $word == = ]] || words+=("$word")
    done
    [[ $current == = ]] && current=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :traces)
                compopt -o filenames 2>/dev/null
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(
                    compgen -d -- "$current"
                    for word in '*.vscope' '*.vscope.gz' '*.vscope.zst' '*.zip'; do
                        compgen -f -X "!$word" -- "$current"
                    done)
                ;;
            :files | :folders)
                compopt -o filenames 2>/dev/null
                [[ $line == :files ]] && word=-f || word=-d
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$word" -- "$current")
                ;;
            :command)
                _vramscope_command
                ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("$program" --complete ${words[@]+"${words[@]}"} "$current" 2>/dev/null)
}

# The command line that `run` and `doctor` are given: as bash-completion completes it, where there is one.
_vramscope_command() {
    local at=1
    while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} != -- ]]; do ((at++)); done
    if ((at < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
        _command_offset $((at + 1))
    else
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -f -- "$current")
    fi
}

complete -F _vramscope vramscope
