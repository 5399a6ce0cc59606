import json

from .measure import MEDIANS, measure_medians

MEDIANS.write_text(json.dumps(measure_medians()) + "\n", encoding="utf-8")
