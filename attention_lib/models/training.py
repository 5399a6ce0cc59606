"""One training loop, which every recipe uses."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from tqdm import tqdm


def train(
    model: nn.Module,
    batch_loss: Callable[[], Tensor],
    *,
    steps: int,
    rate: float,
    weight_decay: float = 0.01,
    warmup: int = 50,
    decay: float = 0.4,
    label: str = "training",
) -> list[float]:
    """Minimise `batch_loss()`, which draws a batch and returns its loss, by AdamW; return the losses.

    The rate rises linearly for `warmup` steps and falls linearly to 0.02 of `rate` over the last
    share `decay` of the steps. A progress bar shows the loss.
    """
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=weight_decay)
    losses = []
    model.train()
    progress = tqdm(range(steps), desc=label, unit="step")
    for step in progress:
        rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
        fall = min(1.0, max(0.02, (steps - step) / (decay * steps))) if decay else 1.0
        for group in optimiser.param_groups:
            group["lr"] = rate * rise * fall
        loss = batch_loss()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
        if step % 20 == 0:
            progress.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    model.eval()
    return losses
