"""How privacy adds up: Theorem 7 of the paper, zCDP, and privacy-loss distributions."""

from __future__ import annotations

from protocol.accounting.composition import TheoremForm, compose, compose_as_claimed
from protocol.accounting.privacy_loss import (
    ProfiledMechanism,
    bounded_range,
    epsilon_of_composition,
    pure_laplace,
)
from protocol.accounting.zcdp import (
    bounded_range_rho,
    compose_rho,
    epsilon_of_rho,
    gaussian_rho,
    pure_rho,
)

__all__ = [
    "ProfiledMechanism",
    "TheoremForm",
    "bounded_range",
    "bounded_range_rho",
    "compose",
    "compose_as_claimed",
    "compose_rho",
    "epsilon_of_composition",
    "epsilon_of_rho",
    "gaussian_rho",
    "pure_laplace",
    "pure_rho",
]
