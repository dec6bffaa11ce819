"""Serve counts and latencies of the responses to Prometheus at http://127.0.0.1:PORT/metrics.

Options: port (9464; 0: any free port, which is printed).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict

from mcpspy import LiveExchange, LiveSession
from mcpspy.io.http.request import HttpRequest, Response
from mcpspy.io.http.server import accepting
from mcpspy.io.network.listener import listening

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: those of Prometheus's own clients."""


class Metrics:
    def configure(self, options: dict[str, str]) -> None:
        self.port = int(options.get("port", 9464))
        self.responses: Counter[str] = Counter()
        self.buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.seconds: defaultdict[str, float] = defaultdict(float)

    async def session_started(self, session: LiveSession) -> None:
        self.name = session.name
        listener = listening("127.0.0.1", self.port, "use another port, or 0 for a free one")
        self.serving = accepting(self.answer, listener)
        await self.serving.__aenter__()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
        print(f"metrics: {self.url}")

    def response(self, exchange: LiveExchange) -> None:
        labels = label("server", self.name) + "," + label("method", exchange.method)
        labels += "," + label("tool", exchange.tool)
        self.responses[labels + "," + label("status", exchange.status)] += 1
        self.seconds[labels] += exchange.latency or 0.0
        self.buckets[labels][bisect_left(BUCKETS, exchange.latency or 0.0)] += 1

    async def answer(self, request: HttpRequest) -> Response:
        if request.method != "GET" or request.target != "/metrics":
            return Response(404)
        lines = ["# TYPE mcp_responses_total counter"]
        lines += [f"mcp_responses_total{{{labels}}} {count}" for labels, count in self.responses.items()]
        lines.append("# TYPE mcp_latency_seconds histogram")
        for labels, counts in self.buckets.items():
            for number, bound in enumerate([*map(str, BUCKETS), "+Inf"], 1):
                lines.append(f'mcp_latency_seconds_bucket{{{labels},le="{bound}"}} {sum(counts[:number])}')
            lines.append(f"mcp_latency_seconds_sum{{{labels}}} {self.seconds[labels]}")
            lines.append(f"mcp_latency_seconds_count{{{labels}}} {sum(counts)}")
        return Response(200, ("\n".join(lines) + "\n").encode(), "text/plain; charset=utf-8")


def label(name: str, value: str) -> str:
    return '{}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))


script = Metrics()
