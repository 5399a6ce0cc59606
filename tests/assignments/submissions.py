"""Submissions for the grader's tests: a right answer, attacks on the marking, and ways to come to nothing."""

from dataclasses import dataclass

QUESTION = "scaled_dot_product_attention"
RIGHT = """\
import numpy as np

def scaled_dot_product_attention(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    w = np.exp(s - s.max(axis=-1, keepdims=True))
    return w / w.sum(axis=-1, keepdims=True) @ v
"""
# Right, unless an attack has succeeded and set `escaped`.
GUARDED = RIGHT.replace("    return w /", "    return 0 * v[..., :1, :] if escaped else w /")


def attack(body: str) -> str:
    """Code that tries something; `escaped` says whether it went through."""
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"try:\n{indented}\n    escaped = True\nexcept BaseException:\n    escaped = False\n"


# What fails in the sandbox, and succeeds without one. {secret}, {folder}, {port} are the test's.
REACHING = {
    "reads a file in the home directory": attack("open(r'{secret}').read()"),
    "lists the course": attack("import os\nos.listdir(r'{folder}')"),
    "writes the gradebook": attack("open(r'{secret}', 'a').write('20 points')"),
    "deletes the course": attack("import os\nos.rename(r'{folder}', r'{folder}' + '-gone')"),
    "opens a socket": attack(
        "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1).send(b'marks')"
    ),
    "finds the grader's process": attack("open('/proc/{process}/environ', 'rb').read()"),
    "kills the grader's processes": attack("import os\nos.kill({process}, 0)"),
}

# What fails, or harms nobody, with and without a sandbox.
HARMLESS = {
    "walks frames for the reference": attack(
        """
import gc, sys
frame, found = sys._getframe(), []
while frame is not None:
    found += [*frame.f_globals, *frame.f_locals]
    frame = frame.f_back
found += [getattr(one, '__name__', '') for one in gc.get_objects() if callable(one)]
found += [str(name) for one in gc.get_objects() if type(one) is dict for name in one]
reference = ('scaled_dot_product', 'diagnose', 'Exercise', 'wrong_settings')
if not any(str(name).startswith(reference) for name in found):
    raise LookupError
"""
    ),
    "prints 100 MB": "escaped = False\nfor i in range(100): print('x' * 1_000_000)\n",
    "writes into the streams it has": attack("import os\nos.read(0, 1)[0]"),
    "kills its parent": "import os\nescaped = False\ntry: os.kill(os.getppid(), 9)\nexcept OSError: pass\n",
    "writes a large file": attack("open('large', 'wb').write(bytes(40 << 20))"),
    "shows a picture": "%matplotlib inline\nescaped = False\ndisplay(escaped)\n!ls\n?print\nprint?\n",
}

# What is shut out by the sandbox alone, but would do harm without.
HARMFUL = {
    "fills /tmp": attack(
        """
for number in range(100):
    with open(f'/tmp/{number}', 'wb') as file:
        file.write(bytes(20 << 20))
"""
    ),
    "fills /dev/shm": attack("open('/dev/shm/x', 'wb').write(bytes(40 << 20))"),
    "writes beside its own files": attack("open('/grader/driver.py', 'a')"),
    "signals every process": "import os\nescaped = False\ntry: os.kill(-1, 15)\nexcept OSError: pass\n",
    "becomes root": attack(
        "import os\nos.setuid(0)\nif os.geteuid() or open('/proc/1/mem'): raise OSError"
    ),
    "takes memory that no process maps": attack("import mmap\nmmap.mmap(-1, 1 << 20)"),
    "opens zeros to map them": attack("open('/dev/zero', 'rb')"),
    "lists the machine's keys": attack("open('/proc/keys', 'rb').read()"),
    "mounts": attack(
        """
import ctypes
libc = ctypes.CDLL(None)
if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None): raise OSError
"""
    ),
}


@dataclass(frozen=True)
class Failing:
    """A submission that gets nothing, and words of the advice."""

    name: str
    code: str
    says: str
    seconds: float = 10.0


def returning(expression: str) -> str:
    """A function that returns one expression."""
    return f"import numpy as np\ndef {QUESTION}(q, k, v, mask=None):\n    return {expression}\n"


FAILING = [
    Failing(
        "patches np.allclose",
        "import numpy as np\nnp.allclose = lambda *a, **k: True\nnp.all = "
        "np.array_equal = lambda *a, **k: np.True_\n" + returning("v[..., :1, :]"),
        "shape",
    ),
    Failing(
        "loops for ever, swallowing signals",
        """
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
while True:
    try:
        while True: pass
    except BaseException: pass
""",
        "The cell that begins with `import signal` did not finish in 0.7 s of computing.",
        0.7,
    ),
    Failing(
        "loops in the function",
        returning("sum(iter(int, 1))"),
        "It did not finish in 0.7 s of computing.",
        0.7,
    ),
    Failing(
        "os._exit in a cell",
        "import os\nos._exit(0)",
        "The cell that begins with `import os` ended Python",
    ),
    Failing(
        "os._exit in the function", returning("__import__('os')._exit(0)"), "It ended Python before"
    ),
    Failing("crashes", "import ctypes\nctypes.string_at(0)", "ended Python"),
    Failing("sys.exit", returning("__import__('sys').exit(0)"), "It raises SystemExit in line 3"),
    Failing("input", returning("np.array(input('scores? '))"), "waits for input"),
    Failing(
        "recursion", returning(f"{QUESTION}(q, k, v, mask)"), "It raises RecursionError in line 3"
    ),
    Failing("allocates 100 GB", returning("np.ones(100 << 27)"), "It raises MemoryError in line 3"),
    Failing(
        "fills memory",
        "held = []\nwhile True: held.append(bytearray(b'x' * (16 << 20)))",
        "` took more than 1 GB of memory.",
    ),
    Failing(
        "forks without end",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "` started more than 16 processes.",
        5,
    ),
    Failing(
        "makes files without end",
        "number = 0\nwhile True:\n    open(f'/tmp/{number}', 'w').close()\n    number += 1",
        "` wrote more than 20000 files.",
    ),
    Failing(
        "forks, and each takes memory",
        """
import os
for _ in range(3): os.fork()
held = []
while True: held.append(bytearray(b'x' * (4 << 20)))
""",
        "` took more than 1 GB of memory.",
    ),
    Failing(
        "equal to everything",
        """
class Equal:
    __array_priority__ = 1e9
    def __eq__(self, other): return True
    def __getattr__(self, name): return self
    def __call__(self, *given, **options): return self
    def __array__(self, *given, **options): return None
"""
        + returning("Equal()"),
        "The result is of type Equal, expected one array",
    ),
    Failing(
        "an array of objects", returning("np.array([print, None], dtype=object)"), "of type ndarray"
    ),
    Failing("text", returning("'correct'"), "The result is of type str"),
    Failing(
        "pickled into its bytes",
        "import pickle\n" + returning("np.frombuffer(pickle.dumps(print), np.uint8)"),
        "has shape",
    ),
    Failing("a giant array", returning("np.zeros((900, 900))"), "more than 32 MB of results"),
    Failing("an array of 10^13 zeros", returning("np.broadcast_to(0.0, (10**13,))"), "MemoryError"),
    Failing(
        "garbage in the pipe",
        """
import os
for descriptor in range(3, 50):
    try: os.write(descriptor, b'garbage, 20 points')
    except OSError: pass
"""
        + RIGHT,
        "wrote something else",
    ),
    Failing(
        "an answer too long to be read",
        """
import os, struct
for descriptor in range(3, 50):
    try: os.write(descriptor, b'|' + struct.pack('<QQ', 1 << 60, 1 << 60))
    except OSError: pass
""",
        "more than 32 MB",
    ),
    Failing(
        "a forged answer",
        """
import json, os, struct
text = json.dumps({"errors": [], "cases": [{"kind": "output"}] * 99, "student": ""}).encode()
for descriptor in range(3, 50):
    try: os.write(descriptor, b'|' + struct.pack('<QQ', len(text), 8) + text + bytes(8))
    except OSError: pass
""",
        "wrote something else",
    ),
    Failing(
        "a forged report",
        """
import json, os, struct
text = b'[' * 100_000
arrays = b'\\x02' + bytes(7) + b'{}'
for descriptor in range(3, 50):
    try: os.write(descriptor, b'|' + struct.pack('<QQ', len(text), len(arrays)) + text + arrays)
    except OSError: pass
""",
        "wrote something else",
    ),
    Failing("closes the pipe", "import os\nos.closerange(0, 99)\n" + RIGHT, "ended Python"),
    Failing(
        "changes q in place",
        RIGHT.replace("    s = q @", "    q /= np.sqrt(q.shape[-1])\n    s = q @").replace(
            " / np.sqrt(q.shape[-1])\n    if", "\n    if"
        ),
        "The values are right. You changed q in place",
    ),
    Failing(
        "calls the library",
        "from attention_lib import attention\n" + returning("attention(q, k, v, mask)"),
        "attention_lib.attention is not there while answers are marked",
    ),
    Failing("defines nothing", "x = 1", "There is no function scaled_dot_product_attention"),
    Failing(
        "fails before it is defined",
        "x = 1 / 0\n" + RIGHT,
        "Its cell raises ZeroDivisionError in line 1, `x = 1 / 0`",
    ),
    Failing("is not Python", RIGHT.replace("):", ")"), "Its cell raises SyntaxError in line 3"),
    Failing("is blank", returning("..."), "It is not written yet."),
    Failing(
        "raises, with a hint",
        RIGHT.replace("np.swapaxes(k, -1, -2)", "k"),
        "`@` pairs the last axis",
    ),
    Failing(
        "raises a message of megabytes",
        "def " + QUESTION + "(*a): raise ValueError('\\x1b[2J<b>x</b> ' * 1_000_000)",
        "It raises ValueError in line 1",
    ),
    Failing(
        "raises what cannot be read",
        "class Odd(Exception):\n    def __str__(self): raise Odd\n"
        "def " + QUESTION + "(*a): raise Odd",
        "It raises Odd in line 3",
    ),
    Failing(
        "has a mistake", RIGHT.replace(" / np.sqrt(q.shape[-1])", ""), "Divide them by sqrt(d_k)"
    ),
]

OTHERS_RIGHT = {
    "torch": """
import torch
def scaled_dot_product_attention(q, k, v, mask=None):
    q, k, v = map(torch.from_numpy, (q, k, v))
    s = q @ k.mT * q.shape[-1] ** -0.5
    if mask is not None:
        s = s.masked_fill(~torch.from_numpy(mask), -torch.inf)
    return torch.softmax(s, -1) @ v
""",
    "a list": RIGHT.replace("keepdims=True) @ v", "keepdims=True) @ v)")
    .replace("return w /", "return list(w /")
    .replace("list(w /", "np.ndarray.tolist(w /"),
    "softmax of the library, checked": """
import numpy as np
import figures.theme
import attention_lib.core as core
from attention_lib import ShapeError, softmax
from attention_lib.checks import check
from figures import draw_matrix, show
def scaled_dot_product_attention(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return softmax(s if mask is None else np.where(mask, s, -np.inf)) @ v
check(scaled_dot_product_attention)
show(draw_matrix(np.eye(3)), alt="three")
""",
    "longdouble": RIGHT.replace("return w /", "return np.longdouble(1) * w /"),
    "a fork answers first, and wrongly": "import os, time\nchild = os.fork()\ntime.sleep(0.3 * bool(child))\n"
    + RIGHT
    + f"if not child: {QUESTION} = abs\n",
}
