"""Diagnosis of a session: what went wrong, ranked, with evidence and the next step."""

from mcpspy.analysis.explain.causes import CAUSES
from mcpspy.analysis.explain.diagnosis import Cause, Diagnosis, Explainer, LastGood
from mcpspy.analysis.explain.signs import EvidenceLine

__all__ = ["CAUSES", "Cause", "Diagnosis", "EvidenceLine", "Explainer", "LastGood"]
