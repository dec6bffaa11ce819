// The reports on a session or a run: statistics with charts, context cost, capabilities, lint findings, differences.
// Each takes the JSON of `reports.py` and returns elements. Charts are SVG, drawn here.

function tile(name, value, tone = "") {
  return make(`div.tile${tone && `.${tone}`}`, {}, make("dt", {}, name), make("dd", {}, value));
}

/** Return a bar chart of values over equal parts of a time, with the largest value and the ends of the axis. */
function columnChart(values, label, end) {
  const most = Math.max(...values, 1);
  const bars = values.map((value, i) =>
    draw("rect", { x: i * 10 + 1, y: 100 - (value / most) * 100, width: 8, height: (value / most) * 100 }),
  );
  const chart = draw(
    "svg",
    { viewBox: `0 0 ${values.length * 10} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    ...bars,
  );
  const axis = make("div.axis", {}, make("span", {}, "0 s"), make("span", {}, duration(end)));
  return make("figure.chart", {}, make("figcaption", {}, label), make("div.plot", {}, make("span.most", {}, String(most)), chart), axis);
}

/** Return the latencies of a group on a logarithmic scale from 0.1 ms to 100 s: a bar from p50 to p95, a tick at the maximum. */
function latencyBar(latency, label) {
  const x = (seconds) => Math.min(Math.max((Math.log10(Math.max(seconds, 1e-9)) + 4) / 6, 0), 1) * 100;
  const [from, to, most] = [x(latency.p50), x(latency.p95), x(latency.max)];
  const parts = [
    draw("rect", { x: 0, y: 7, width: 100, height: 0.6, class: "base" }),
    draw("rect", { x: from, y: 3, width: Math.max(to - from, 1.2), height: 8 }),
    draw("rect", { x: Math.min(most, 99.2), y: 1, width: 0.8, height: 12, class: "tick" }),
  ];
  return draw("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", role: "img", "aria-label": label }, ...parts);
}

function table(heads, rows) {
  const head = make("tr", {}, ...heads.map((words) => make("th", { scope: "col" }, words)));
  return make(
    "div.scroll",
    { tabIndex: 0, role: "group", ariaLabel: "table" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)),
  );
}

function cell(content, name = "") {
  return make(`td${name && `.${name}`}`, {}, ...(Array.isArray(content) ? content : [content]));
}

function statsView({ sessions }) {
  return sessions.length === 1 && !place.key.startsWith(RUN) ? sessionStats(sessions[0]) : runStats(sessions);
}

const summed = (sides) => total(Object.values(sides));

/** Return the number of errors that settle no request; a filter of requests finds none of them. */
const straysOf = (stats) => (stats.filter ? 0 : stats.stray_errors);

/** Return the numbers of the sessions of a run, one line each. */
function runStats(sessions) {
  const lines = sessions.map((stats) => {
    const { client, server } = stats.requests;
    const latency = client.latency;
    const wrong = [client.errors + server.errors + straysOf(stats), client.unanswered + server.unanswered];
    const times = ["p50", "p95", "max"].map((key) => cell(latency ? duration(latency[key]) : "", "figure"));
    return make(
      "tr",
      {},
      cell(linkToSession(stats.id, stats.name), "what"),
      cell(summed(stats.messages).toLocaleString("en"), "figure"),
      cell(size(summed(stats.bytes)), "figure"),
      cell((client.count + server.count).toLocaleString("en"), "figure"),
      ...wrong.map(badCell),
      ...times,
      cell(latency ? latencyBar(latency, `${stats.name}: p50 ${duration(latency.p50)}, p95 ${duration(latency.p95)}`) : "", "range"),
      cell(String(stats.in_flight.most), "figure"),
    );
  });
  return [
    make("h2", {}, "Sessions"),
    table(["session", "messages", "bytes", "requests", "errors", "unanswered", "p50", "p95", "max", "latency", "peak"], lines),
  ];
}

/** Return a cell with a number of errors or of unanswered requests; empty for none. */
function badCell(count) {
  return cell(count ? count.toLocaleString("en") : "", "figure.bad");
}

/** Return a link to a session of the run that is shown. */
function linkToSession(id, name) {
  const key = session.facts.sessions?.find((each) => each.key === id || each.name === name)?.key ?? id;
  const link = make("a", { href: source.addressOf({ ...START, key }) }, ...visible(name));
  link.dataset.key = key;
  return link;
}

function sessionStats(stats) {
  const both = [stats.requests.client, stats.requests.server];
  const sum = (of) => both.reduce((total, side) => total + (of(side) ?? 0), 0);
  const errors = sum((side) => side.errors) + straysOf(stats);
  const unanswered = sum((side) => side.unanswered);
  const pending = stats.waiting.length;
  const tiles = [
    tile("duration", duration(stats.seconds)),
    tile("messages", summed(stats.messages).toLocaleString("en")),
    tile("bytes", size(summed(stats.bytes))),
    tile("requests", sum((side) => side.count).toLocaleString("en")),
    tile("errors", errors.toLocaleString("en"), errors ? "bad" : ""),
    tile("unanswered", unanswered.toLocaleString("en"), unanswered ? "bad" : ""),
    ...(stats.live ? [tile("pending", pending.toLocaleString("en"), pending ? "open" : "")] : []),
    tile("peak concurrency", String(stats.in_flight.most)),
    tile("server busy", `${(stats.server_share * 100).toFixed(1)} %`),
  ];
  const groups = stats.groups.filter((group) => group.latency || group.kind !== "notification");
  const longest = Math.max(...groups.map((group) => group.latency?.total ?? 0), 1e-9);
  const lines = groups
    .sort((one, other) => (other.latency?.total ?? 0) - (one.latency?.total ?? 0))
    .map((group) => {
      const { latency } = group;
      const name = `${group.method ?? "(others)"} ${group.about ?? ""}`;
      const times = latency
        ? ["p50", "p95", "max"].map((key) => cell(duration(latency[key]), "figure"))
        : [cell("", "figure"), cell("", "figure"), cell("", "figure")];
      const share = make("i.share");
      share.style.width = `${((latency?.total ?? 0) / longest) * 100}%`;
      return make(
        "tr",
        {},
        cell(
          [arrow(group.from), " ", ...visible(group.method ?? "(others)"), " ", make("span.subject", {}, ...visible(group.about ?? ""))],
          "what",
        ),
        cell(group.count.toLocaleString("en"), "figure"),
        badCell(group.errors),
        badCell(group.unanswered),
        ...times,
        cell(latency ? latencyBar(latency, `${name}: p50 ${duration(latency.p50)}, p95 ${duration(latency.p95)}`) : "", "range"),
        cell(latency ? [make("span", {}, duration(latency.total)), share] : "", "total"),
      );
    });
  const largest = stats.largest.map((each) =>
    make(
      "tr",
      {},
      cell(size(each.size), "figure"),
      cell([arrow(each.from), " ", ...visible(`${each.kind} ${each.method ?? ""} ${each.about ?? ""}`)], "what"),
      cell(`${moment(each.at)} s`, "figure"),
    ),
  );
  return [
    make("dl.tiles", {}, ...tiles),
    columnChart(stats.in_flight.profile, "requests in flight over time", stats.seconds),
    make("h2", {}, "Requests"),
    make("p.aside", {}, "Bars: from p50 to p95, with a tick at the maximum, from 0.1 ms to 100 s on a logarithmic scale."),
    table(["method and target", "count", "errors", "unanswered", "p50", "p95", "max", "latency", "total"], lines),
    make("h2", {}, "Largest messages"),
    table(["bytes", "message", "at"], largest),
  ];
}

/** Return the context cost as `mcpspy stats --context` prints it. */
function contextView(found) {
  const { window: room, start, tools } = found;
  const share = (count) => (count ? `${count / room >= 0.001 ? ((count / room) * 100).toFixed(1) : "< 0.1"} %` : "0 %");
  const sizes = (size) =>
    size
      ? [
          cell(size.bytes.toLocaleString("en"), "figure"),
          cell(size.tokens.toLocaleString("en"), "figure"),
          cell(share(size.tokens), "figure"),
        ]
      : [cell("", "figure"), cell("", "figure"), cell("", "figure")];
  const named = ({ server, name, tool }) => (found.servers.length > 1 ? `${server}: ${name ?? tool}` : (name ?? tool));
  const count = (number) => cell(number.toLocaleString("en"), "figure");
  const line = (name, ...cells) => make("tr", {}, cell([...visible(name)], "what"), ...cells);
  const most = Math.max(...tools.map((tool) => tool.definition?.tokens ?? 0), 1);
  const bar = (tokens) => {
    const made = make("i.share");
    made.style.width = `${(tokens / most) * 100}%`;
    return cell(tokens ? [made] : "", "total");
  };
  const unused = tools.filter((tool) => tool.definition && !tool.calls);
  const tiles = [
    tile("before the first call", `${start.tokens.toLocaleString("en")} tokens`),
    tile(`of ${room.toLocaleString("en")}`, share(start.tokens)),
    tile("tools", (found.lists.tools?.count ?? 0).toLocaleString("en")),
    tile("never called", unused.length.toLocaleString("en"), unused.length ? "open" : ""),
  ];
  const lists = Object.entries(found.lists).filter(([, list]) => list.count);
  const results = [...tools.filter((tool) => tool.results).map((tool) => [named(tool), tool.results]), ...Object.entries(found.others)];
  results.sort((one, other) => other[1].total.tokens - one[1].total.tokens);
  const parts = [make("dl.tiles", {}, ...tiles), make("p.aside", {}, found.notes)];
  const add = (title, heads, lines) => lines.length && parts.push(make("h2", {}, title), table(heads, lines));
  add(
    "Lists",
    ["list", "count", "bytes", "tokens", "share"],
    lists.map(([name, list]) => line(name, count(list.count), ...sizes(list.size))),
  );
  add(
    "Tool definitions",
    ["tool", "calls", "bytes", "tokens", "share", "compared"],
    tools.map((tool) => line(named(tool), count(tool.calls), ...sizes(tool.definition), bar(tool.definition?.tokens ?? 0))),
  );
  add(
    "Results",
    ["tool or method", "count", "p50", "p95", "largest", "bytes", "tokens", "share", "media"],
    results.map(([name, cost]) =>
      line(
        name,
        count(cost.count),
        ...[cost.p50, cost.p95, cost.max].map((each) => count(each.tokens)),
        ...sizes(cost.total),
        cell(cost.media ? cost.media.toLocaleString("en") : "", "figure"),
      ),
    ),
  );
  add(
    "Same arguments in one session",
    ["call", "calls"],
    found.repeated.map((call) => line(`${named(call)} ${call.arguments}`, count(call.calls))),
  );
  return parts;
}

const LISTINGS = { tools: "Tools", prompts: "Prompts", resources: "Resources", resourceTemplates: "Resource templates" };

function capabilitiesView(found) {
  const declared = (side) =>
    Object.entries(found.capabilities[side] ?? {}).map(([name, value]) =>
      make("span.chip", {}, ...visible(Object.keys(value ?? {}).length ? `${name} ${JSON.stringify(value)}` : name)),
    );
  const sides = ["server", "client"].map((side) => {
    const chips = declared(side);
    return make("p.declared", {}, make("b", {}, `${side} `), ...(chips.length ? chips : [make("span.aside", {}, "nothing declared")]));
  });
  const instructions = found.instructions
    ? [
        make(
          "details.capability",
          {},
          make("summary", {}, `Instructions (${size(found.instructions.length)} characters)`),
          plainText(found.instructions),
        ),
      ]
    : [];
  const listings = Object.entries(found.listings).flatMap(([member, items]) => {
    const tokens = items.reduce((sum, item) => sum + (item.tokens ?? 0), 0);
    const title = `${LISTINGS[member] ?? member} (${items.length.toLocaleString("en")}${tokens ? `, about ${tokens.toLocaleString("en")} tokens` : ""})`;
    return [make("h2", {}, title), ...items.map(capability)];
  });
  const none = listings.length ? [] : [make("p.aside", {}, "The server listed nothing in this session.")];
  return [
    make("p.aside", {}, ...visible([found.server, found.revision].filter(Boolean).join(" · "))),
    ...sides,
    ...instructions,
    ...listings,
    ...none,
  ];
}

function capability(item) {
  const about = [item.title, item.description].filter(Boolean).join(" · ");
  const summary = make(
    "summary",
    {},
    make("code", {}, ...visible(item.name)),
    make("span.aside", {}, ...visible(about.replace(/\s+/g, " "))),
    make("span.aside.tokens", {}, item.tokens ? `${item.tokens.toLocaleString("en")} tokens` : ""),
  );
  const details = make("details.capability", {}, summary);
  details.addEventListener(
    "toggle",
    () => details.open && details.childElementCount === 1 && details.append(make("div.body", {}, layOut(item.definition))),
    { once: true },
  );
  return details;
}

const SEVERITIES = { error: "bad", warning: "open", info: "quiet" };

function findingsView(found) {
  if (!found.total) return [make("p.aside", {}, "No findings: the session follows the protocol, as far as the rules check it.")];
  return [
    make("p.aside", {}, `${plural(found.total, "finding")} of ${plural(found.rules.length, "rule")}`),
    ...found.rules.map((rule) => {
      const items = rule.findings.map((each) =>
        make(
          "li",
          {},
          linkTo({ number: each.number }, `#${each.number}`),
          make("span.aside", {}, ` ${moment(each.at)} s `),
          ...visible(each.message),
          each.excerpt ? make("code.excerpt", {}, ...visible(each.excerpt)) : null,
        ),
      );
      const rest = rule.count - rule.findings.length;
      if (rest > 0) items.push(make("li.aside", {}, `and ${rest.toLocaleString("en")} more`));
      const summary = make(
        "summary",
        {},
        make(`span.badge.${SEVERITIES[rule.severity]}`, {}, rule.severity),
        make("code", {}, rule.code),
        rule.summary,
        make("span.aside", {}, ` ${rule.count.toLocaleString("en")}`),
      );
      return make(
        "details.finding",
        { open: rule.severity !== "info" },
        summary,
        make("p.aside", {}, rule.explanation),
        make("ul", {}, ...items),
      );
    }),
  ];
}

const VERDICTS = { breaking: "bad", different: "open", note: "quiet" };

function diffView(found) {
  const counts = Object.entries(found.counts)
    .filter(([, count]) => count)
    .map(([name, count]) => `${count.toLocaleString("en")} ${name}`);
  const value = (side) => (side && "value" in side ? layOut(JSON.stringify(side.value)) : make("span.aside", {}, side ? "" : "absent"));
  const changes = found.changes
    .slice(0, 500)
    .map((change) =>
      make(
        "article.change",
        {},
        make(
          "div.bar",
          {},
          make(`span.badge.${VERDICTS[change.severity] ?? "quiet"}`, {}, change.severity),
          make("code", {}, ...visible(`${change.method} ${change.about ?? ""}`)),
          make("span.aside", {}, ...visible(`${change.kind} ${change.pointer ?? ""} ${change.why ?? ""}`)),
        ),
        make(
          "div.sides",
          {},
          make("div.side.old", {}, make("h3", {}, "old"), make("div.body", {}, value(change.old))),
          make("div.side.new", {}, make("h3", {}, "new"), make("div.body", {}, value(change.new))),
        ),
      ),
    );
  const summary = found.changes.length ? counts.join(", ") : `No differences in ${plural(found.compared, "step")}.`;
  return [make("h2", {}, ...visible(`${found.old} and ${found.new}`)), make("p.aside", {}, summary), ...changes];
}

const VIEWS = {
  messages: { title: "Messages", key: "1", ofRuns: true },
  stats: { title: "Statistics", key: "2", show: statsView, ofRuns: true },
  capabilities: { title: "Capabilities", key: "3", show: capabilitiesView },
  findings: { title: "Findings", key: "4", show: findingsView },
  timeline: { title: "Timeline", key: "5", ofRuns: true },
  context: { title: "Context cost", key: "6", show: contextView, ofRuns: true },
  diff: { title: "Differences", show: diffView },
};

const RUN = "run:"; // The key of a run begins with it.
