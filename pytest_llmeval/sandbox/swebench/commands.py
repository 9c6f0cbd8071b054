"""The shell commands of a trial: what runs in the container around the tests."""

from __future__ import annotations

import hashlib

from pytest_llmeval.sandbox.swebench.guard import find_guarded
from pytest_llmeval.sandbox.swebench.guard import guarded_script
from pytest_llmeval.sandbox.swebench.guard import official_script
from pytest_llmeval.sandbox.swebench.guard import patched_files
from pytest_llmeval.sandbox.swebench.trial import Trial

FOLDER = "/llmeval"
"""The trial's own files in the container."""

KEEPER = "while read -r _; do :; done"
"""The container's first process, in bash: it ends with its input, which ends with the session.

It takes in what other processes leave behind, and no signal from inside ends the first process of
a container."""

KILLED = 137
"""Exit code of tests that were killed, or that changed their own files: no success."""

KILL_AFTER = 5
"""Seconds between the two signals that end tests beyond their time."""

_SCRIPT = """\
git checkout 0 tests.py
git apply -v - <<'EOF_0'
EOF_0
: '>>>>> Start Test Output'
: '>>>>> End Test Output'
"""
"""The least script that has the form of a row's."""

# All of this but its last command runs before any code of the candidate. None of it is read from a
# file meanwhile, and its output decides nothing alone: the exit code comes from the engine, and the
# end counts only if the engine confirms it.
_BEGIN = r"""
exec </dev/null 2>/dev/null
nonce=$1 limit=$2 base=$3
in=@FOLDER@
fail() { printf '%s failed %s %s\n' "$nonce" "$1" "$2"; exit 0; }
last() { tail -n 2 "$1" | tr '\n' ' ' | tail -c 250; }
for tool in cmp find git patch tar timeout xargs; do
    command -v "$tool" >/dev/null || fail machine "the image has no $tool"
done
cd /testbed || fail machine 'the image has no folder /testbed'
git config --global --add safe.directory /testbed

# The order of swebench 5.0.2.
clean() { git checkout -- . ; git clean -fd ; }
apply() {
    git apply --verbose "$1" && return
    clean; git apply --verbose --3way "$1" && return
    clean; git apply --verbose --reject "$1" && return
    clean; patch --batch --forward --fuzz=5 -p1 -i "$1" && return
    git apply --check --reverse "$1"
}
"""

_APPLY = r"""
sources() { :; }
apply "$in/model.patch" >"$in/apply.log" 2>&1 || fail patch "$(last "$in/apply.log")"
"""

_GUARD = (
    r"""
git config --global core.hooksPath /dev/null
guarded() { @FIND@ ; }
# Everything of git's that is not its index or an object, which are checked when they are read.
of_git() {
    find .git -path '.git/objects/[0-9a-f][0-9a-f]' -prune -o \
        ! -type d ! -path .git/index -printf '%p %y %m %s %C@ %l\n' | sort
}
of_git >"$in/git.before"
guarded >"$in/guarded.before"
tar --create --null --no-recursion --files-from="$in/guarded.before" --file="$in/guarded.tar" ||
    fail machine 'the guarded files cannot be saved'
"""
    + _APPLY
    + r"""
of_git >"$in/git.after"
cmp -s "$in/git.before" "$in/git.after" || fail patch 'it writes into .git'

# Where a folder was, the patch may have put a link to another one, or a file.
clear_folders() {
    local path=${1#./} folder=
    while [ "$path" != "${path#*/}" ]; do
        folder=$folder${path%%/*} path=${path#*/}
        if [ -L "$folder" ] || { [ -e "$folder" ] && [ ! -d "$folder" ]; }; then
            case "$(git ls-tree "$base" -- "$folder")" in
                120000*) ;;
                *) rm -f -- "$folder" ;;
            esac
        fi
        folder=$folder/
    done
}
declare -A spared
while IFS= read -r -d '' file; do spared["./$file"]=1; done <"$in/gold"
unspared() {
    while IFS= read -r -d '' file; do
        [ -n "${spared["$file"]-}" ] || printf '%s\0' "$file"
    done
}
guarded | unspared | xargs --null --no-run-if-empty rm -rf --
unspared <"$in/guarded.before" >"$in/restored"
while IFS= read -r -d '' file; do clear_folders "$file"; done <"$in/restored"
# Without names, tar takes all.
[ ! -s "$in/restored" ] ||
    tar --extract --null --no-recursion --files-from="$in/restored" --file="$in/guarded.tar" ||
    fail machine 'the guarded files cannot be restored'

while IFS= read -r -d '' file; do
    clear_folders "$file"; rm -rf -- "$file"
done < <(cat "$in/tests.old" "$in/tests.new")
xargs --null --no-run-if-empty git checkout --quiet "$base" -- <"$in/tests.old" \
    >"$in/reset.log" 2>&1 || fail machine "the test files cannot be reset: $(last "$in/reset.log")"
if ! git apply --verbose "$in/test.patch" >"$in/reset.log" 2>&1; then
    export GIT_INDEX_FILE=$in/index
    git read-tree "$base" && git apply --cached --check "$in/test.patch" >/dev/null 2>&1 ||
        fail machine "test_patch does not apply: $(last "$in/reset.log")"
    fail patch "the tests cannot be put in place after it: $(last "$in/reset.log")"
fi
existing() { while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done; }
cat "$in/tests.old" "$in/tests.new" | existing >"$in/tests"
# Not what an installation writes anew, from configuration that is restored.
{ cat "$in/tests"; grep --null-data --invert-match --extended-regexp '[.](egg|dist)-info/' "$in/restored"; } |
    tar --create --null --no-recursion --files-from=- --file="$in/kept.tar" ||
    fail machine 'the tests cannot be saved'
sources() { grep --null-data '[.]py$' "$in/tests" | xargs --null --no-run-if-empty sha256sum; }
"""
)

_TESTS = r"""
: >"$in/failed"
before=$(sources)
printf '%s start\n' "$nonce"
# Where memory is short, the kernel ends these and not the container's first process.
echo 1000 >/proc/self/oom_score_adj
timeout --kill-after=@KILL_AFTER@ "$limit" bash "$in/tests.sh" 2>&1
code=$?
remark="setup failed: $(tr '\n' ' ' <"$in/failed" | head -c 250)"
[ -s "$in/failed" ] || remark=
[ "$before" = "$(sources)" ] || remark='the tests were changed while they ran' code=@KILLED@
printf '\n%s end %s\n' "$nonce" "$remark"
exit "$code"
"""


def command(trial: Trial, nonce: str) -> list[str]:
    """Return the command that runs `trial` in its container, where `files` are in `FOLDER`."""
    text = _text(guarded=trial.guarded)
    return ["bash", "-c", text, "llmeval", nonce, f"{trial.timeout:g}", trial.base_commit]


def files(trial: Trial) -> dict[str, bytes]:
    """Files that the command needs; `ValueError` for an `eval_script` of another form."""
    given = {"model.patch": trial.patch}
    if trial.guarded:
        gold, tests = patched_files(trial.gold_patch), patched_files(trial.test_patch)
        given |= {
            "test.patch": trial.test_patch,
            "tests.sh": guarded_script(trial.eval_script, FOLDER),
            "gold": _list((*gold.old, *gold.new)),
            "tests.old": _list(tests.old),
            "tests.new": _list(tests.new),
        }
    else:
        given["tests.sh"] = official_script(trial.eval_script)
    return {name: _encoded(text) for name, text in given.items()}


def version() -> str:
    """Return a digest of all that is done around the tests, and of the list of guarded files."""
    scripts = [guarded_script(_SCRIPT, FOLDER), official_script(_SCRIPT)]
    texts = [_text(guarded=True), _text(guarded=False), *scripts]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _text(*, guarded: bool) -> str:
    text = _BEGIN + (_GUARD if guarded else _APPLY) + _TESTS
    for name, value in (
        ("@FOLDER@", FOLDER),
        ("@FIND@", find_guarded()),
        ("@KILL_AFTER@", str(KILL_AFTER)),
        ("@KILLED@", str(KILLED)),
    ):
        text = text.replace(name, value)
    return text


def _list(paths: tuple[str, ...]) -> str:
    return "".join(f"{path}\0" for path in paths)


def _encoded(text: str) -> bytes:
    """UTF-8; bytes that were not, as Python keeps them, come back; other half characters do not."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
