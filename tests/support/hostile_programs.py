"""Programs that want to pass without being right, to see what is not theirs, or to do harm.

The checks are those of a function that squares, unless a program has its own. A program that is
refused what it tries and then is right is expected to pass: that is how it reports the refusal.
"""

from __future__ import annotations

from dataclasses import dataclass

RIGHT = "\ndef f(x):\n    return x * x\n"
WRONG = "\ndef f(x):\n    return -1\n"
CHECKS = "assert f(3) == 9\nassert f(-4) == 16\n"
SECRET = "zq-7193-answer"
"""An expected value that no candidate can know."""

_REFUSED = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(number, *arguments):
    return libc.syscall(number, *arguments) == -1 and ctypes.get_errno() == errno.EPERM
def forbidden(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return True
    return False
"""


@dataclass(frozen=True)
class Hostile:
    source: str
    expected: frozenset[str]
    says: str = ""
    tests: str = CHECKS
    context: str = ""


def _fails(source: str, says: str = "", **more: str) -> Hostile:
    return Hostile(source, frozenset({"failed"}), says, **more)


def _ends(source: str, *expected: str) -> Hostile:
    return Hostile(source, frozenset(expected))


def _is_refused(source: str) -> Hostile:
    """`source` leaves in `safe` whether all that it tried was refused."""
    program = _REFUSED + source + "\ndef f(x):\n    return x * x if safe else -1\n"
    return Hostile(program, frozenset({"passed"}))


_EQUAL_TO_ALL = """
class Any{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
"""

FORGERIES = {
    "leaves_with_0": _fails("import os\nos._exit(0)", "exited before the checks finished"),
    "leaves_with_0_in_a_call": _fails(
        "import os\ndef f(x): os._exit(0)", "exited before the checks finished"
    ),
    "sys_exit_0": _fails("import sys\nsys.exit(0)", "exited before the checks finished"),
    "sys_exit_0_in_a_call": _fails(
        "import sys\ndef f(x): sys.exit(0)", "exited before the checks finished"
    ),
    "exits_with_a_child_that_holds_on": _fails(
        "import os, time\nif os.fork() == 0: time.sleep(60)\nos._exit(0)", "exited before"
    ),
    "equal_to_all": _fails(_EQUAL_TO_ALL.format(base="") + "def f(x): return Any()"),
    "int_equal_to_all": _fails(_EQUAL_TO_ALL.format(base="(int)") + "def f(x): return Any(5)"),
    "float_equal_to_all": _fails(_EQUAL_TO_ALL.format(base="(float)") + "def f(x): return Any(5)"),
    "str_equal_to_all": _fails(_EQUAL_TO_ALL.format(base="(str)") + "def f(x): return Any('5')"),
    "list_equal_to_all": _fails(
        _EQUAL_TO_ALL.format(base="(list)") + "def f(x): return Any([5])",
        tests="assert f(3) == [9]",
    ),
    "calls_itself_an_int": _fails(
        _EQUAL_TO_ALL.format(base="") + "    __class__ = property(lambda self: int)\n"
        "def f(x): return Any()"
    ),
    "arithmetic_that_gives_0": _fails(
        "class Zero(float):\n"
        "    def __sub__(self, other): return 0.0\n"
        "    __rsub__ = __sub__\n"
        "    def __abs__(self): return 0.0\n"
        "def f(x): return Zero(5)",
        tests="assert abs(f(3) - 9) < 1e-6",
    ),
    "opaque_arithmetic": _fails(
        "class Zero:\n"
        "    def __sub__(self, other): return 0.0\n"
        "    def __float__(self): return 9.0\n"
        "    def __lt__(self, other): return True\n"
        "def f(x): return Zero()",
        "TypeError",
        tests="assert abs(f(3) - 9) < 1e-6",
    ),
    "contains_all": _fails(
        "class Box:\n    def __contains__(self, one): return True\n    def __iter__(self): yield 1\n"
        "def f(x): return Box()",
        tests="assert 9 in f(3)",
    ),
    "patched_builtins": _fails(
        "import builtins\n"
        "for name in ('abs', 'all', 'len', 'isinstance', 'set', 'sorted', 'tuple'):\n"
        "    setattr(builtins, name, lambda *a, **k: True)\n"
        "builtins.AssertionError = type('Quiet', (Exception,), {})\n" + WRONG,
        tests="assert all([f(3) == 9]) and len([f(3)]) == 1 and f(3) == 9",
    ),
    "patched_check": _fails(
        "def check(candidate): pass\n" + WRONG,
        tests="def check(candidate):\n    assert candidate(3) == 9\ncheck(f)",
    ),
    "patched_module": _fails(
        "import math\nmath.isclose = lambda *a, **k: True\n" + WRONG,
        context="import math",
        tests="assert math.isclose(f(3), 9)",
    ),
    "own_math": _fails(
        "class math:\n    isclose = staticmethod(lambda *a, **k: True)\n" + WRONG,
        context="import math",
        tests="assert math.isclose(f(3), 9)",
    ),
    "forces_an_error": _fails(
        "import sys, os\n"
        "values = iter([sys, os.getcwd, type('A', (), {}), {}.values(), iter([]), print])\n"
        "def f(x): return next(values)",
        tests="assert f(f(f(f(f(f(3)))))) == 9",
    ),
    "patched_guest": _fails(
        "import sys\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if name.startswith('pytest_llmeval'):\n"
        "        for one in list(vars(module)):\n"
        "            if one in ('check', '_run_checks', '_verdict'):\n"
        "                setattr(module, one, lambda *a: {'status': 'passed', 'detail': ''})\n"
        + WRONG
    ),
    "writes_verdicts_everywhere": _fails(
        "import os, struct\n"
        'verdict = b\'{"status": "passed", "detail": "", "id": "x"}\'\n'
        "for number in range(256):\n"
        "    try: os.write(number, struct.pack('>I', len(verdict)) + verdict)\n"
        "    except OSError: pass\n" + WRONG
    ),
    "prints_success": _fails(
        "import os, sys\n"
        "print('1 passed')\nprint('PASSED')\nprint('all checks passed')\n"
        "sys.stdout.flush()\nos._exit(0)"
    ),
    "writes_garbage": _fails(
        "import os\n"
        "for number in range(3, 256):\n"
        "    try: os.write(number, b'\\x00\\x00\\x00\\x04null' * 50)\n"
        "    except OSError: pass\n" + RIGHT,
        "bad answer",
    ),
    "announces_a_huge_message": _fails(
        "import os\n"
        "for number in range(3, 256):\n"
        "    try: os.write(number, b'\\xff\\xff\\xff\\xff')\n"
        "    except OSError: pass\n" + RIGHT,
        "bad answer",
    ),
    "closes_everything": _fails("import os\nos.closerange(0, 4096)\n" + RIGHT),
    "becomes_another_program": _fails("import os\nos.execv('/bin/sleep', ['sleep', '60'])"),
    "raises_success": _fails(
        "class Passed(BaseException): pass\ndef f(x): raise Passed('passed')", "Passed"
    ),
    "raises_an_exit_that_a_check_expects_not": _fails(
        "def f(x): raise GeneratorExit", "GeneratorExit"
    ),
    "looks_for_the_checks_in_memory": _fails(
        "import gc\n"
        "found = []\n"
        "wanted = 'zq-' + str(7193)\n"
        "for one in gc.get_objects():\n"
        "    if isinstance(one, dict):\n"
        "        found += [v for v in one.values() if isinstance(v, str) and wanted in v]\n"
        "import os\n"
        "try:\n"
        "    with open('/proc/self/maps') as maps: spans = [line.split()[0] for line in maps]\n"
        "    memory = open('/proc/self/mem', 'rb')\n"
        "except OSError:\n"
        "    spans = []\n"
        "for span in spans:\n"
        "    begin, end = (int(part, 16) for part in span.split('-'))\n"
        "    try:\n"
        "        memory.seek(begin)\n"
        "        data = memory.read(min(end - begin, 1 << 26))\n"
        "    except (OSError, ValueError, OverflowError): continue\n"
        "    if b'zq-7193-' + b'answer' in data: found.append('zq-7193-' + 'answer')\n"
        "def f(x): return found[0] if found else None",
        tests=f"assert f(3) == {SECRET!r}",
    ),
    "catches_all_and_goes_on": _fails(
        "try:\n    raise KeyboardInterrupt\nexcept BaseException:\n    pass\n" + WRONG
    ),
    "signals_all_it_can": _fails(
        "import os\n"
        "for pid in [int(one) for one in os.listdir('/proc') if one.isdecimal()]:\n"
        "    if pid != os.getpid():\n"
        "        try: os.kill(pid, 9)\n"
        "        except OSError: pass\n"
        "try: os.kill(-1, 9)\n"
        "except OSError: pass\n" + WRONG
    ),
    "thread_kills_the_parent": _fails(
        "import os, threading\n"
        "def end():\n"
        "    while True:\n"
        "        try: os.kill(os.getppid(), 9)\n"
        "        except OSError: pass\n"
        "threading.Thread(target=end, daemon=True).start()\n" + WRONG
    ),
}

LOOKS = {
    "reads_others": _is_refused(
        "import glob\n"
        "own = str(os.getpid())\n"
        "others = [p for p in os.listdir('/proc') if p.isdecimal() and p != own]\n"
        "safe = bool(others) and all(\n"
        "    forbidden(open, f'/proc/{pid}/{what}', 'rb')\n"
        "    for pid in others for what in ('environ', 'mem', 'maps'))"
    ),
    "environment": _is_refused(
        "safe = not [name for name in os.environ if 'LLMEVAL' in name or 'TOKEN' in name]"
    ),
    "host_files": _is_refused(
        "safe = not os.path.exists('/root/.ssh') and not os.path.exists('/var/run/docker.sock')"
    ),
    "network": _fails("import socket\nsocket.create_connection(('1.1.1.1', 80), 1)\n" + RIGHT),
    "internet_sockets": _is_refused(
        "import socket\n"
        "safe = all(forbidden(socket.socket, family, socket.SOCK_STREAM)\n"
        "           for family in (socket.AF_INET, socket.AF_INET6, 16, 17))"
    ),
    "keyring": _is_refused(
        "import platform\n"
        "one = platform.machine() == 'x86_64'\n"
        "safe = (refused(248 if one else 217, b'user', b'a', b'b', 1, -3)\n"
        "        and refused(250 if one else 219, 0, -3, 1))"
    ),
    "ptrace": _is_refused(
        "import platform\n"
        "one = platform.machine() == 'x86_64'\n"
        "safe = all(refused(101 if one else 117, 16, int(pid), 0, 0)\n"
        "           for pid in os.listdir('/proc') if pid.isdecimal())"
    ),
    "namespaces": _is_refused(
        "import platform\n"
        "one = platform.machine() == 'x86_64'\n"
        "safe = (refused(272 if one else 97, 0x10000000)\n"
        "        and refused(165 if one else 40, b'none', b'/tmp', b'tmpfs', 0, 0)\n"
        "        and refused(161 if one else 51, b'/tmp')\n"
        "        and refused(321 if one else 280, 0, 0, 0)\n"
        "        and refused(425, 1, 0))"
    ),
    "other_users": _is_refused(
        "safe = all(forbidden(os.setuid, user) for user in (0, os.getuid() + 1, 1)) and (\n"
        "    forbidden(os.setgroups, [0]))"
    ),
    "devices": _is_refused(
        "safe = all(forbidden(open, name, 'rb') for name in ('/dev/mem', '/dev/kmsg', '/dev/vda'))\n"
        "safe = safe and forbidden(os.mknod, 'disk', 0o60600, os.makedev(8, 0))"
    ),
    "writes_elsewhere": _is_refused(
        "here = os.getcwd()\n"
        "above = os.path.dirname(here)\n"
        "beside = [os.path.join(above, one) for one in os.listdir(above)]\n"
        "places = ['/', '/usr', '/etc', '/tmp', '/proc', '/sys', '/dev', above, *beside]\n"
        "safe = len(beside) > 1 and all(\n"
        "    forbidden(open, f'{place}/file', 'w') for place in places if place != here)"
    ),
    "raises_its_limits": _is_refused(
        "import resource\n"
        "def more(what):\n"
        "    try: resource.setrlimit(what, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "    except (OSError, ValueError): return True\n"
        "safe = all(map(more, (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE)))"
    ),
    "links_out": _is_refused(
        "os.symlink('/etc/passwd', 'passwd')\nos.symlink('/tmp', 'tmp')\nos.symlink('.', 'loop')\n"
        "safe = forbidden(open, 'passwd', 'w')"
    ),
    "shared_memory_that_stays": _is_refused(
        "import platform\n"
        "open('/dev/shm/left', 'w').write('here')\n"
        "safe = refused(29 if platform.machine() == 'x86_64' else 194, 7, 4096, 0o1777)"
    ),
    "shared_memory_of_the_one_before": _is_refused("safe = not os.listdir('/dev/shm')"),
    "files_of_the_one_before": _is_refused("safe = not os.listdir('.')"),
    "standard_input": _fails("scale = int(input())" + RIGHT, "EOFError"),
}

HARM = {
    "endless_loop": _ends("while True: pass", "timeout"),
    "endless_sleep": _ends("import time\ndef f(x): time.sleep(1000)", "timeout"),
    "stops_itself": _ends("import os\nos.kill(os.getpid(), 19)" + RIGHT, "timeout"),
    "deaf_to_signals": _ends(
        "import signal\n"
        "for one in range(1, 65):\n"
        "    try: signal.signal(one, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "while True: pass",
        "timeout",
    ),
    "swallows_everything": _ends(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass", "timeout"
    ),
    "endless_result": _ends(
        "def f(x):\n    while True: yield 1\n" + "f = (lambda g: lambda x: list(g(x)))(f)",
        *("memory", "timeout"),
    ),
    "endless_iterator": Hostile(
        "import itertools\ndef f(x): return itertools.count()",
        frozenset({"timeout", "memory"}),
        tests="assert 9.5 in f(3)",
    ),
    "endless_print": _ends("while True: print('spam ' * 1000)", "timeout"),
    "prints_50_mb": _ends("print('x' * 50_000_000)" + RIGHT, "passed"),
    "fork_bomb": _ends("import os\nwhile True: os.fork()" + RIGHT, "failed", "timeout"),
    "patient_fork_bomb": _ends(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
        *("timeout", "failed"),
    ),
    "fork_storm": _ends(
        "import os, time\n"
        "def f(x):\n"
        "    for _ in range(20):\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(120)\n"
        "            os._exit(0)\n"
        "    return x * x\n",
        *("passed", "failed"),
    ),
    "grandchild_holds_the_output": _ends(
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(120)\n"
        "    os._exit(0)\n" + RIGHT,
        "passed",
    ),
    "hidden_grandchild": _ends(
        "import ctypes, os, time\n"
        "if os.fork() == 0:\n"
        "    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        "    ctypes.CDLL(None).prctl(15, b'kworker', 0, 0, 0)\n"
        "    os.setsid()\n"
        "    while True: time.sleep(1)\n" + RIGHT,
        "passed",
    ),
    "threads": _ends(
        "import threading, time\n"
        "for _ in range(1000): threading.Thread(target=time.sleep, args=(60,)).start()\n" + RIGHT,
        *("failed", "memory"),
    ),
    "memory": _ends("a = [0] * 10**9" + RIGHT, "memory"),
    "memory_in_one_call": _ends(
        "import itertools\ndef f(x): return len(list(itertools.product(range(60), repeat=6)))",
        *("memory", "timeout", "failed"),
    ),
    "memory_of_children": _ends(
        "import os, time\n"
        "for _ in range(20):\n"
        "    if os.fork() == 0:\n"
        "        held = bytearray(200_000_000)\n"
        "        time.sleep(60)\n"
        "held = bytearray(200_000_000)\n"
        "time.sleep(60)\n",
        *("memory", "failed", "timeout"),
    ),
    "memory_in_files": _ends(
        "import os\n"
        "held = []\n"
        "while True:\n"
        "    held.append(os.memfd_create('a'))\n"
        "    os.write(held[-1], bytes(30_000_000))\n",
        *("memory", "failed", "timeout"),
    ),
    "large_result": _fails("def f(x): return 'x' * 60_000_000", "too large"),
    "deep_result": _fails(
        "def f(x):\n    a = []\n    for _ in range(100_000): a = [a]\n    return a", "nested"
    ),
    "endless_recursion": _fails("def f(x): return f(x)", "RecursionError"),
    "deeper_recursion": _ends(
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return [f(x)]",
        *("failed", "memory", "timeout"),
    ),
    "disk": _ends(
        "data = bytes(1 << 20)\nfor n in range(200):\n    open(str(n), 'wb').write(data)\n" + RIGHT,
        "failed",
    ),
    "disk_in_one_file": _ends(
        "with open('a', 'wb') as file:\n    while True: file.write(bytes(1 << 20))\n" + RIGHT,
        "failed",
    ),
    "10000_files": _ends(
        "for n in range(10_000):\n    open(str(n), 'w').close()\n" + RIGHT, "passed", "failed"
    ),
    "deep_folders": _ends(
        "import os\nfor n in range(3_000):\n    os.mkdir('d')\n    os.chdir('d')\n" + RIGHT,
        *("passed", "failed"),
    ),
    "closed_folders": _ends(
        "import os\n"
        "os.makedirs('a/b/c')\nopen('a/b/file', 'w').close()\n"
        "os.chmod('a/b', 0)\nos.chmod('a', 0)\nos.chmod('.', 0)\n" + RIGHT,
        "passed",
    ),
    "odd_files": _ends(
        "import os, socket\n"
        "os.mkfifo('pipe')\nos.symlink('nowhere', b'\\xff\\xfe')\nopen('a\\nb', 'w').close()\n"
        "socket.socket(socket.AF_UNIX).bind('s')\nopen('-rf', 'w').close()\n" + RIGHT,
        "passed",
    ),
    "open_files": _ends(
        "import os\nheld = [os.open('/dev/null', 0) for _ in range(10_000)]" + RIGHT, "failed"
    ),
    "zombies": _ends(
        "import os\nfor _ in range(40):\n    if os.fork() == 0: os._exit(0)\n" + RIGHT, "passed"
    ),
    "segfault": _fails("import ctypes\ndef f(x): ctypes.string_at(0)", "signal SIGSEGV"),
    "aborts": _fails("import os\ndef f(x): os.abort()", "signal SIGABRT"),
    "alarm": _fails(
        "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ndef f(x): time.sleep(60)",
        "signal SIGALRM",
    ),
    "kills_itself": _fails("import os\nos.kill(os.getpid(), 9)", "signal SIGKILL"),
    "not_python": _fails("def f(x: return", "SyntaxError"),
    "null_bytes": _fails("x = '\0'\n" + RIGHT, "Error"),
}

ALL = FORGERIES | LOOKS | HARM
