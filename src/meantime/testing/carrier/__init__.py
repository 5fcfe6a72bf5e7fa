"""The conformance suite of the Carrier port: one small check per sentence of its contract.

A carrier of your own passes when `await exercise_carrier(make)` returns, where `make()` gives a
`CarrierSite`: a server, and ends that are connected to it. With a test runner, parametrize over
`CARRIER_CHECKS` and hand each one a fresh site. A carrier may lose and double; so the checks repeat what
they send, as an owner does.
"""

from __future__ import annotations

from .carrier_site import CarrierSite
from .carrier_suite import CARRIER_CHECKS, Check, exercise_carrier

__all__ = ["CARRIER_CHECKS", "CarrierSite", "Check", "exercise_carrier"]
