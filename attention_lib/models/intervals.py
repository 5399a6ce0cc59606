"""How sure a share is that was counted."""

import math


def wilson_interval(share: float, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share seen in `trials` independent trials (Wilson 1927).

    Raises ValueError unless 0 <= share <= 1 and there is a trial.
    """
    if not 0 <= share <= 1 or trials < 1:
        raise ValueError(f"share must be from 0 to 1, trials at least 1: {share}, {trials}")
    z = 1.959964
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    whole = 1 + z * z / trials
    return max(0.0, (centre - spread) / whole), min(1.0, (centre + spread) / whole)
