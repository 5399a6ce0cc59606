"""What to try when a learner's function raises: from the message, the code and the shapes alone."""

import re

ROWS = "Vectors are rows here: x @ W, not W @ x and not W.T."
REVERSED = "`.T` reverses all axes; swapaxes(-1, -2) exchanges the last two."
FROM_THE_END = (
    "Count axes from the end: -1 is the last and -2 the one before, however many there are."
)
KEPT = "keepdims=True keeps the axis that sum and max remove."
NO_MASK = "The mask may be None: every key counts then."
SPREAD = (
    "np.where(mask, scores, -np.inf) repeats the mask over the axes in front; an index does not."
)
SLICED = (
    "You slice x before you project it, so a head reads a part of each token. "
    "Project all of x, then split."
)
NOT_MERGED = "W_O takes all heads of a token side by side, H·d_v wide: merge them first."
PAIRED = "`@` pairs the last axis on its left with the last but one on its right."

# As NumPy and PyTorch word them. Repetitions have an end: what is searched may be made to take long.
MISMATCH = r"matmul|not aligned|cannot be multiplied|Expected size for first"
SIZES = (
    r"size (?P<right>\d{1,9}) is different from (?P<left>\d{1,9})",
    r"(?P<left>\d{1,9}) \(dim \d\) != (?P<right>\d{1,9}) \(dim",
    r"\(\d{1,9}x(?P<left>\d{1,9}) and (?P<right>\d{1,9})x\d{1,9}\)",
    r"\[\d{1,9}, (?P<left>\d{1,9})\] but got: \[\d{1,9}, (?P<right>\d{1,9})\]",
)
BROADCAST = r"could not be broadcast|must match the (existing )?size"
AXES = r"axes don't match|is out of bounds for array|Dimension out of range"

W_IS_GIVEN = r"\b(def|lambda)\b[^\n]{0,200}\bW\b"  # by a caller: it may be any matrix
MATRIX = r"\b[WU](_\w{1,40})?\b"
MATRIX_FIRST = (
    rf"(?<!@)(?<!@\s){MATRIX}(\.T)?\s*@|@\s*{MATRIX}\.T|(dot|matmul)\(\s*{MATRIX}|\blinear\("
)
TRANSPOSE = r"\.T\b|\.transpose\(\s{0,9}(\w{1,40}\s{0,9})?\)"
REDUCTION = r"\.(?:sum|max|amax)\((?=[^\n]{0,200}\baxis\b|\s{0,9}(?:\w{1,40}\s{0,9},\s{0,9})?-?\d)"
AXIS_PUT_BACK = r"keepdims|None|newaxis|reshape|expand_dims"


def hint(message: str, code: str, axes: int, heads: int = 0, product: str = "") -> str:
    """What to try, or "" if nothing can be said.

    message: the exception's. code: the lines of the function up to the one that raised. axes: the
    largest number of axes of an argument. heads: their number, if it is an argument. product: the
    expression that raised.
    """
    code = re.sub(r"#.*", "", code)
    mismatch, broadcast = re.search(MISMATCH, message), re.search(BROADCAST, message)
    if mismatch and re.search(MATRIX_FIRST, code):
        return ROWS
    if _is_one_head(message, heads):
        if re.search(r"\bW_?O\b", product):
            return NOT_MERGED
        looped = re.search(r"\bW\b", product) and not re.search(W_IS_GIVEN, code)
        if looped or re.search(r"\bW_?[QKV]\b", product):
            return SLICED
    if (mismatch or broadcast) and axes > 2 and re.search(TRANSPOSE, code):
        return REVERSED
    if "NoneType" in message and "mask" in code:
        return NO_MASK
    if "boolean index did not match" in message and "mask" in code:
        return SPREAD
    if re.search(AXES, message):
        return FROM_THE_END
    if broadcast and any(map(_loses_axis, code.splitlines())):
        return KEPT
    return PAIRED if mismatch and "@" in code else ""


def _is_one_head(message: str, heads: int) -> bool:
    """Whether the left factor of a product is as wide as one of the heads that the right one takes."""
    found = next(filter(None, (re.search(sizes, message) for sizes in SIZES)), None)
    return found is not None and heads > 1 and int(found["right"]) == heads * int(found["left"])


def _loses_axis(line: str) -> bool:
    return len(re.findall(REDUCTION, line)) > len(re.findall(AXIS_PUT_BACK, line))
