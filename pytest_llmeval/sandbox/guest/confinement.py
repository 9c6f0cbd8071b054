"""Confinement of a candidate by the kernel: limits, identity, and system calls."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVILEGES = 38
_SET_DUMPABLE = 4
_SET_SECCOMP = 22
_SET_CHILD_SUBREAPER = 36
_FILTER_MODE = 2
_ALLOW, _REFUSE, _ABSENT, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
"""Run it; EPERM; ENOSYS, so that libc uses the older call; end the process."""

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# Numbers on x86_64 and aarch64, from the kernel's tables of system calls.
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "personality": (135, 92),
    # What outlives the processes that made it.
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # A list of what the candidate may run on, and at which priority, is not its own to set.
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
}
_SOCKET = (41, 198)
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_NAMESPACES = 0x7E020000
_LOCAL = 1
_OTHER_ABI = 0x40000000
"""System calls of the x32 kind: other numbers for the same calls."""


def limit_process(limits: dict[str, Any]) -> None:
    """Set the limits of a candidate on its own process."""
    limit_memory(limits)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, int(limits["disk_mb"]) << 20)
    _limit(resource.RLIMIT_NOFILE, 256)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    _limit(resource.RLIMIT_SIGPENDING, 256)
    if limits["processes"] is not None:
        _limit(resource.RLIMIT_NPROC, limits["processes"])


def limit_memory(limits: dict[str, Any]) -> None:
    """Limit the memory of this process; checks hold the values that a candidate returns."""
    _limit(resource.RLIMIT_AS, int(limits["memory_mb"]) << 20)


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def become(user: int) -> None:
    """Change from root to `user`; 0 means a sandbox with a single user."""
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def be_first_to_die() -> None:
    """Have the kernel kill this process, not the supervisor, when the sandbox is out of memory."""
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return  # No such file under some runtimes; the limit of the process holds all the same.
    os.write(file, b"1000")
    os.close(file)


def hide_memory() -> None:
    """Keep processes of the same user from reading this one's memory."""
    _prctl(_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of orphans among this process's descendants."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def refuse_system_calls() -> None:
    """Install the filter for this process and its children; raise `OSError` where it cannot be."""
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(f"no system call filter for {machine}")
    program = _filter(machine)
    block = ctypes.create_string_buffer(program)
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(block))
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(head))


def _prctl(option: int, value: int, pointer: Any = 0) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), pointer, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")


def _filter(machine: str) -> bytes:
    """Return the filter as the kernel's bytecode: loads of call number and arguments, and jumps."""
    audit, column = _MACHINES[machine]
    code = [
        _load(4),
        *_when_not_equal(audit, _KILL),
        _load(0),
    ]
    if machine == "x86_64":
        code += _when_any_bit(_OTHER_ABI, _REFUSE)
    for numbers in _REFUSED.values():
        code += _when_equal(numbers[column], [_return(_REFUSE)])
    code += _when_equal(_CLONE3[column], [_return(_ABSENT)])
    namespaces = [_load(16), *_when_any_bit(_NAMESPACES, _REFUSE), _return(_ALLOW)]
    code += _when_equal(_CLONE[column], namespaces)
    local = [_load(16), *_when_not_equal(_LOCAL, _REFUSE), _return(_ALLOW)]
    code += _when_equal(_SOCKET[column], local)
    code.append(_return(_ALLOW))
    return b"".join(code)


def _instruction(code: int, then: int, otherwise: int, value: int) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _load(offset: int) -> bytes:
    return _instruction(0x20, 0, 0, offset)


def _return(value: int) -> bytes:
    return _instruction(0x06, 0, 0, value)


def _when_equal(value: int, do: list[bytes]) -> list[bytes]:
    return [_instruction(0x15, 0, len(do), value), *do]


def _when_not_equal(value: int, result: int) -> list[bytes]:
    return [_instruction(0x15, 1, 0, value), _return(result)]


def _when_any_bit(bits: int, result: int) -> list[bytes]:
    return [_instruction(0x45, 0, 1, bits), _return(result)]
