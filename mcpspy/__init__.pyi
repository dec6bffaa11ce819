from mcpspy.errors import CannotStart as CannotStart
from mcpspy.errors import McpspyError as McpspyError
from mcpspy.errors import UsageError as UsageError
from mcpspy.ui.api.live import LiveExchange as LiveExchange
from mcpspy.ui.api.live import LiveHead as LiveHead
from mcpspy.ui.api.live import LiveMessage as LiveMessage
from mcpspy.ui.api.live import ScriptSession as LiveSession
from mcpspy.ui.api.mock import InProcessMock as Mock
from mcpspy.ui.api.record import record as record
from mcpspy.ui.api.results import diff as diff
from mcpspy.ui.api.results import lint as lint
from mcpspy.ui.api.results import stats as stats
from mcpspy.ui.api.session import ReadExchange as Exchange
from mcpspy.ui.api.session import ReadMessage as Message
from mcpspy.ui.api.session import ReadSession as Session
from mcpspy.ui.api.session import follow as follow
from mcpspy.ui.api.session import read as read
from mcpspy.ui.api.session import sessions as sessions
from mcpspy.ui.api.write import RecordingFile as Recording
from mcpspy.ui.views.content import Content as Content

__version__: str

__all__ = [
    "CannotStart",
    "Content",
    "Exchange",
    "LiveExchange",
    "LiveHead",
    "LiveMessage",
    "LiveSession",
    "McpspyError",
    "Message",
    "Mock",
    "Recording",
    "Session",
    "UsageError",
    "__version__",
    "diff",
    "follow",
    "lint",
    "read",
    "record",
    "sessions",
    "stats",
]
