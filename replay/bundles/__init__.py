"""A bundle: some streams of a log in one file that opens anywhere, without a database and with nothing run."""

from __future__ import annotations

from .log import BundleLog
from .opening import open_bundle
from .redacting import parse_redactions
from .writing import write_bundle

__all__ = ["BundleLog", "open_bundle", "parse_redactions", "write_bundle"]
