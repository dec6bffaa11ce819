// The reports on a session or a run: statistics with charts, context cost, capabilities, lint findings, causes, differences.
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

const line = (...cells) => make("tr", {}, ...cells);

/** Return a cell with a number, or with a number and its unit. */
const figure = (value) => cell(typeof value === "number" ? commas(value) : value, "figure");

/** Return a cell with a number of errors or of unanswered requests; empty for none. */
const badCell = (count) => cell(count ? commas(count) : "", "figure.bad");

/** Return the cells of latencies, and their bar. */
function latencyCells(latency, name) {
  if (!latency) return [...["", "", ""].map(figure), cell("", "range")];
  const bar = latencyBar(latency, `${name}: p50 ${duration(latency.p50)}, p95 ${duration(latency.p95)}`);
  return [...[latency.p50, latency.p95, latency.max].map((each) => figure(duration(each))), cell(bar, "range")];
}

/** Return a bar for a part of a whole. */
function shareBar(share) {
  const bar = make("i.share");
  bar.style.width = `${share * 100}%`;
  return bar;
}

function statsView({ sessions }) {
  return sessions.length === 1 && !place.key.startsWith(RUN) ? sessionStats(sessions[0]) : runStats(sessions);
}

const summed = (sides) => total(Object.values(sides));

/** Return the number of errors that settle no request; a filter of requests finds none of them. */
const straysOf = (stats) => (stats.filter ? 0 : stats.stray_errors);

/** Return the numbers of the sessions of a run, one line each. */
function runStats(sessions) {
  const heads = ["session", "messages", "bytes", "requests", "errors", "unanswered", "p50", "p95", "max", "latency", "peak"];
  const lines = sessions.map((stats) => {
    const { client, server } = stats.requests;
    const counts = [summed(stats.messages), size(summed(stats.bytes)), client.count + server.count];
    const wrong = [client.errors + server.errors + straysOf(stats), client.unanswered + server.unanswered];
    const latency = latencyCells(client.latency, stats.name);
    const name = cell(linkToSession(stats.id, stats.name), "what");
    return line(name, ...counts.map(figure), ...wrong.map(badCell), ...latency, figure(stats.in_flight.most));
  });
  return [make("h2", {}, "Sessions"), table(heads, lines)];
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
  const errors = total(both.map((side) => side.errors)) + straysOf(stats);
  const unanswered = total(both.map((side) => side.unanswered ?? 0));
  const pending = stats.waiting.length;
  const tiles = [
    tile("duration", duration(stats.seconds)),
    tile("messages", commas(summed(stats.messages))),
    tile("bytes", size(summed(stats.bytes))),
    tile("requests", commas(total(both.map((side) => side.count)))),
    tile("errors", commas(errors), errors ? "bad" : ""),
    tile("unanswered", commas(unanswered), unanswered ? "bad" : ""),
    ...(stats.live ? [tile("pending", commas(pending), pending ? "open" : "")] : []),
    tile("peak concurrency", String(stats.in_flight.most)),
    tile("server busy", `${(stats.server_share * 100).toFixed(1)} %`),
  ];
  const spent = (group) => group.latency?.total ?? 0;
  const groups = stats.groups.filter((group) => group.latency || group.kind !== "notification");
  const longest = Math.max(...groups.map(spent), 1e-9);
  groups.sort((one, other) => spent(other) - spent(one));
  const lines = groups.map((group) => {
    const [method, about] = [group.method ?? "(others)", group.about ?? ""];
    const name = [arrow(group.from), " ", ...visible(method), " ", make("span.subject", {}, ...visible(about))];
    const all = group.latency ? [make("span", {}, duration(spent(group))), shareBar(spent(group) / longest)] : "";
    const wrong = [group.errors, group.unanswered].map(badCell);
    return line(
      cell(name, "what"),
      figure(group.count),
      ...wrong,
      ...latencyCells(group.latency, `${method} ${about}`),
      cell(all, "total"),
    );
  });
  const largest = stats.largest.map((each) => {
    const name = [arrow(each.from), " ", ...visible(`${each.kind} ${each.method ?? ""} ${each.about ?? ""}`)];
    return line(figure(size(each.size)), cell(name, "what"), figure(`${moment(each.at)} s`));
  });
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
  const sizes = (size) => (size ? [size.bytes, size.tokens, share(size.tokens)] : ["", "", ""]).map(figure);
  const named = ({ server, name, tool }) => (found.servers.length > 1 ? `${server}: ${name ?? tool}` : (name ?? tool));
  const nameCell = (name) => cell([...visible(name)], "what");
  const most = Math.max(...tools.map((tool) => tool.definition?.tokens ?? 0), 1);
  const bar = (tokens) => cell(tokens ? shareBar(tokens / most) : "", "total");
  const unused = tools.filter((tool) => tool.definition && !tool.calls);
  const tiles = [
    tile("before the first call", `${commas(start.tokens)} tokens`),
    tile(`of ${commas(room)}`, share(start.tokens)),
    tile("tools", commas(found.lists.tools?.count ?? 0)),
    tile("never called", commas(unused.length), unused.length ? "open" : ""),
  ];
  const lists = Object.entries(found.lists).filter(([, list]) => list.count);
  const results = [...tools.filter((tool) => tool.results).map((tool) => [named(tool), tool.results]), ...Object.entries(found.others)];
  results.sort((one, other) => other[1].total.tokens - one[1].total.tokens);
  const parts = [make("dl.tiles", {}, ...tiles), make("p.aside", {}, found.notes)];
  const add = (title, heads, lines) => lines.length && parts.push(make("h2", {}, title), table(heads, lines));
  const listed = lists.map(([name, { count, size }]) => {
    const seen = name === "apps" ? [figure(size.bytes), figure(""), cell("not for the model", "total")] : sizes(size);
    return line(nameCell(name), figure(count), ...seen);
  });
  add("Lists", ["list", "count", "bytes", "tokens", "share"], listed);
  const defined = tools.map((tool) => {
    return line(nameCell(named(tool)), figure(tool.calls), ...sizes(tool.definition), bar(tool.definition?.tokens));
  });
  add("Tool definitions", ["tool", "calls", "bytes", "tokens", "share", "compared"], defined);
  const returned = results.map(([name, cost]) => {
    const counts = [cost.count, cost.p50.tokens, cost.p95.tokens, cost.max.tokens];
    return line(nameCell(name), ...counts.map(figure), ...sizes(cost.total), figure(cost.media || ""));
  });
  add("Results", ["tool or method", "count", "p50", "p95", "largest", "bytes", "tokens", "share", "media"], returned);
  const repeated = found.repeated.map((call) => line(nameCell(`${named(call)} ${call.arguments}`), figure(call.calls)));
  add("Same arguments in one session", ["call", "calls"], repeated);
  return parts;
}

const LISTINGS = { tools: "Tools", prompts: "Prompts", resources: "Resources", resourceTemplates: "Resource templates", skills: "Skills" };

function capabilitiesView(found) {
  const declared = (side) =>
    Object.entries(found.capabilities[side] ?? {}).map(([name, value]) =>
      make("span.chip", {}, ...visible(Object.keys(value ?? {}).length ? `${name} ${JSON.stringify(value)}` : name)),
    );
  const sides = ["server", "client"].map((side) => {
    const chips = declared(side);
    return make("p.declared", {}, make("b", {}, `${side} `), ...(chips.length ? chips : [make("span.aside", {}, "nothing declared")]));
  });
  const about = make("summary", {}, `Instructions (${size(found.instructions?.length ?? 0)} characters)`);
  const instructions = found.instructions ? make("details.capability", {}, about, plainText(found.instructions)) : null;
  const listings = Object.entries(found.listings).flatMap(([member, items]) => {
    const tokens = items.reduce((sum, item) => sum + (item.tokens ?? 0), 0);
    const title = `${LISTINGS[member] ?? member} (${commas(items.length)}${tokens ? `, about ${commas(tokens)} tokens` : ""})`;
    return [make("h2", {}, title), ...items.map(capability)];
  });
  const server = make("p.aside", {}, ...visible([found.server, found.revision].filter(Boolean).join(" · ")));
  const none = listings.length ? null : make("p.aside", {}, "The server listed nothing in this session.");
  const extensions = found.extensions.map(({ title, state, status }) =>
    make("li", {}, make("b", {}, ...visible(title)), ...visible(`${state === "final" ? "" : ` (${state})`}: ${status}`)),
  );
  const negotiated = extensions.length ? [make("h2", {}, "Extensions"), make("ul.extensions", {}, ...extensions)] : [];
  return [server, ...sides, ...negotiated, instructions, ...listings, none].filter((part) => part !== null);
}

function capability(item) {
  const about = [item.title, item.description, item.app].filter(Boolean).join(" · ").replace(/\s+/g, " ");
  const tokens = make("span.aside.tokens", {}, item.tokens ? `${commas(item.tokens)} tokens` : "");
  const summary = make("summary", {}, make("code", {}, ...visible(item.name)), make("span.aside", {}, ...visible(about)), tokens);
  const details = make("details.capability", {}, summary);
  const lay = () => details.open && details.childElementCount === 1 && details.append(make("div.body", {}, layOut(item.definition)));
  details.addEventListener("toggle", lay, { once: true });
  return details;
}

const SEVERITIES = { error: "bad", warning: "open", info: "quiet" };

function findingsView(found) {
  if (!found.total) return [make("p.aside", {}, "No findings: the session follows the protocol, as far as the rules check it.")];
  return [make("p.aside", {}, `${plural(found.total, "finding")} of ${plural(found.rules.length, "rule")}`), ...found.rules.map(ruleView)];
}

function ruleView(rule) {
  const items = rule.findings.map(({ number, at, message, excerpt }) => {
    const text = excerpt ? make("code.excerpt", {}, ...visible(excerpt)) : null;
    return make("li", {}, linkTo({ number }, `#${number}`), make("span.aside", {}, ` ${moment(at)} s `), ...visible(message), text);
  });
  const rest = rule.count - rule.findings.length;
  if (rest > 0) items.push(make("li.aside", {}, `and ${commas(rest)} more`));
  const badge = make(`span.badge.${SEVERITIES[rule.severity]}`, {}, rule.severity);
  const count = make("span.aside", {}, ` ${commas(rule.count)}`);
  const summary = make("summary", {}, badge, make("code", {}, rule.code), rule.summary, count);
  const parts = [summary, make("p.aside", {}, rule.explanation), make("ul", {}, ...items)];
  return make("details.finding", { open: rule.severity !== "info" }, ...parts);
}

function explainView(found) {
  const known = found.observations.length
    ? [make("h2", {}, "Worth knowing"), ...found.observations.map((each) => causeView(each, "quiet"))]
    : [];
  const none = found.causes.length ? [] : [make("p.aside", {}, found.summary)];
  const good = found.last_good ? lastGoodView(found.last_good) : [];
  return [...none, ...found.causes.map((cause, i) => causeView(cause, i ? "open" : "bad")), ...good, ...known];
}

function lastGoodView(good) {
  const rest = good.count - good.changes.length;
  const more = rest > 0 ? [make("li.aside", {}, `and ${commas(rest)} more`)] : [];
  const none = good.changes.length ? [] : [make("p.aside", {}, "Nothing that matters has changed since then.")];
  const known = good.known.length ? [make("p.aside", {}, ...visible(`Not new: ${good.known.join(", ")}`))] : [];
  const title = make("h2", {}, ...visible(`Since it worked in session ${good.session}, ${good.started}`));
  return [title, make("ul", {}, ...good.changes.map(evidenceView), ...more), ...none, ...known];
}

function evidenceView({ number, text }) {
  return make("li", {}, number === null ? "" : linkTo({ number }, `#${number}`), " ", ...visible(text));
}

function causeView(cause, tone) {
  const items = cause.evidence.map(evidenceView);
  const rest = cause.count - cause.evidence.length;
  if (rest > 0) items.push(make("li.aside", {}, `and ${commas(rest)} more`));
  const badge = make(`span.badge.${tone}`, {}, cause.side || "cause");
  const summary = make("summary", {}, badge, make("span", {}, ...visible(cause.title)), make("span.aside", {}, ` ${cause.code}`));
  const next = make("p", {}, make("b", {}, "Next: "), ...visible(cause.next_step));
  return make("details.finding", { open: tone !== "quiet" }, summary, make("ul", {}, ...items), next);
}

const MOST_CHANGES = 500; // Differences that are shown.
const VERDICTS = { breaking: "bad", different: "open", note: "quiet" };

function diffView(found) {
  const counts = Object.entries(found.counts).filter(([, count]) => count);
  const summary = counts.map(([name, count]) => `${commas(count)} ${name}`).join(", ");
  const words = found.changes.length ? summary : `No differences in ${plural(found.compared, "step")}.`;
  const changes = found.changes.slice(0, MOST_CHANGES).map(changeView);
  return [make("h2", {}, ...visible(`${found.old} and ${found.new}`)), make("p.aside", {}, words), ...changes];
}

function changeView(change) {
  const badge = make(`span.badge.${VERDICTS[change.severity] ?? "quiet"}`, {}, change.severity);
  const name = make("code", {}, ...visible(`${change.method} ${change.about ?? ""}`));
  const kind = make("span.aside", {}, ...visible(`${change.kind} ${change.pointer ?? ""} ${change.why ?? ""}`));
  const sides = ["old", "new"].map((side) => {
    const value = change[side];
    const shown = value && "value" in value ? layOut(JSON.stringify(value.value)) : make("span.aside", {}, value ? "" : "absent");
    return make(`div.side.${side}`, {}, make("h3", {}, side), make("div.body", {}, shown));
  });
  return make("article.change", {}, make("div.bar", {}, badge, name, kind), make("div.sides", {}, ...sides));
}

const VIEWS = {
  messages: { title: "Messages", key: "1", ofRuns: true },
  stats: { title: "Statistics", key: "2", show: statsView, ofRuns: true },
  capabilities: { title: "Capabilities", key: "3", show: capabilitiesView },
  findings: { title: "Findings", key: "4", show: findingsView },
  timeline: { title: "Timeline", key: "5", ofRuns: true },
  context: { title: "Context cost", key: "6", show: contextView, ofRuns: true },
  explain: { title: "Explain", key: "7", show: explainView },
  diff: { title: "Differences", show: diffView },
};

const RUN = "run:"; // The key of a run begins with it.
