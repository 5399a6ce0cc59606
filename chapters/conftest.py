"""For `pytest --nbval chapters`: no progress bars, whose rates would differ from what is stored."""

import os

os.environ["TQDM_DISABLE"] = "1"
