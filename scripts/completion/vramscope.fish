# SPDX-License-Identifier: Apache-2.0
# Completion for fish: asks the command itself (`vramscope --complete WORD…`).
function __vramscope_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    for line in (command $words[1] --complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :traces
                __fish_complete_path "$current" | string match --regex '^[^\t]*(?:/|\.vscope|\.vscope\.gz|\.vscope\.zst|\.zip)(?:\t.*)?$'
            case :files
                __fish_complete_path "$current"
            case :folders
                __fish_complete_directories "$current"
            case :command
                __fish_complete_subcommand --fcs-skip=2
            case '*'
                echo $line
        end
    end
end
complete --command vramscope --no-files --arguments '(__vramscope_complete)'
