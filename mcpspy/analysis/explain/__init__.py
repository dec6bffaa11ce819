"""Diagnosis of a session: what went wrong, who did it, why, and what to do next, with evidence."""

from mcpspy.analysis.explain.causes import CAUSES
from mcpspy.analysis.explain.diagnosis import Cause, Diagnosis, Explainer, LastGood
from mcpspy.analysis.explain.evidence import EvidenceLine

__all__ = ["CAUSES", "Cause", "Diagnosis", "EvidenceLine", "Explainer", "LastGood"]
