"""Importing this module makes each call once: the processes that measure are forked from one that has done so."""

from __future__ import annotations

import warnings

import forgetting.auditing
import forgetting.bounds  # noqa: F401
from benchmarks.costs.calls import CALLS
from forgetting.compute.threads import one_core

with one_core(), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for call in CALLS:
        call.work(call.prepare(call.tiny), call.tiny)
