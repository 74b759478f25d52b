# Completion of the gnt-* programs for fish. The programs themselves say what may follow.

function __ganeti_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '.*/' '' -- $words[1])
    set -l found (command $program --complete $words[2..] "$last" 2>/dev/null)
    if test "$found" = '<file>'
        __fish_complete_path "$last"
    else if set -q found[1]
        printf '%s\n' $found
    end
end

for program in backup cluster debug disk filter group image instance job network node os rapi storage
    complete -c gnt-$program -f -a '(__ganeti_complete)'
end
