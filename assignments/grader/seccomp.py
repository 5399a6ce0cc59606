"""The system calls that a sandbox refuses, as the program that `bwrap --seccomp` reads.

They give memory that belongs to no process, reach what is not in a namespace, make namespaces, or
look into other processes. Only on the machines of MACHINES: numbers differ from one to the next.
"""

import errno
import struct
import warnings
from functools import cache

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as the kernel calls them
REFUSED = {  # by their numbers there, in the order of MACHINES
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "setsockopt": (54, 208),  # makes the buffers of sockets large
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "open_by_handle_at": (304, 265),
}
CLONE, CLONE3, MMAP = (56, 220), (435, 435), (9, 222)
NAMESPACES = 0x7E02_0000  # each CLONE_NEW… that clone takes
SHARED, ANONYMOUS = 0x01, 0x20  # together: memory that stays when no process maps it any more
OTHER_NUMBERS = 0x4000_0000  # from here on they are those of x32

# What linux/bpf_common.h and linux/seccomp.h call LD|W|ABS, JEQ|K, JGE|K, JSET|K, RET|K.
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16  # where they lie in what is loaded from
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000
Step = tuple[int, int, int, int]  # what, steps to skip if so, and if not, a value


@cache
def program(machine: str) -> bytes:
    """The filter for that machine; nothing, and a warning, where we have none."""
    if machine not in MACHINES:
        warnings.warn(f"On {machine} the sandbox refuses no system calls.", stacklevel=2)
        return b""
    at = list(MACHINES).index(machine)
    refuse, allow = (RETURN, 0, 0, REFUSE | errno.EPERM), (RETURN, 0, 0, ALLOW)
    steps: list[Step] = [
        *((LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, MACHINES[machine]), refuse),
        *((LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, OTHER_NUMBERS), refuse),
    ]
    for numbers in REFUSED.values():
        steps += [(EQUAL, 0, 1, numbers[at]), refuse]
    # Its flags lie in memory, where no filter looks; without it, the C library calls clone.
    steps += [(EQUAL, 0, 1, CLONE3[at]), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    steps += [(EQUAL, 0, 4, CLONE[at]), (LOAD, 0, 0, ARGUMENTS)]
    steps += [(ANY_BIT, 0, 1, NAMESPACES), refuse, allow]
    steps += [(EQUAL, 0, 4, MMAP[at]), (LOAD, 0, 0, ARGUMENTS + 3 * 8)]
    steps += [(ANY_BIT, 0, 2, SHARED), (ANY_BIT, 0, 1, ANONYMOUS), refuse, allow]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)
