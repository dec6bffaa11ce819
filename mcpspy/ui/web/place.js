// The place that the address names: a list, or a session or run with row, filter and view.

const CHIPS = [
  ["errors", "is:error", "bad"],
  ["unanswered", "is:unanswered", "bad"],
  ["slow", "is:slow", "open"],
  ["pending", "is:pending", "open"],
  ["protocol issues", "is:issue", "issue"],
  ["notifications", "is:notification", "quiet"],
  ["stderr", "is:stderr", "quiet"],
  ["HTTP", "note:http or note:http-end or note:sse", "quiet"],
];

const VIEWS = {
  messages: { title: "Messages", key: "1", ofRuns: true },
  stats: { title: "Statistics", key: "2", show: statsView, ofRuns: true },
  capabilities: { title: "Capabilities", key: "3", show: capabilitiesView },
  findings: { title: "Findings", key: "4", show: findingsView },
  timeline: { title: "Timeline", key: "5", ofRuns: true },
  context: { title: "Context cost", key: "6", show: contextView, ofRuns: true },
  diff: { title: "Differences", show: diffView },
};

/** The place with nothing chosen: its members and their values when the address does not name them. */
const START = { home: "sessions", key: null, number: null, q: "", show: [], view: "messages", order: "time", other: "", old: "", now: "", span: "" };

const RUN = "run:"; // The key of a run begins with it.

const NAMED = { q: "q", view: "view", order: "order", other: "with", old: "old", now: "new", span: "t" }; // Member → parameter.

/** Return the address of a place. */
function addressOf({ home, key, number, show, ...members }) {
  const folder = key === null ? [home === "runs" ? "runs" : ""] : key.startsWith(RUN) ? ["r", key.slice(RUN.length)] : ["s", key];
  const path = `/${[...folder, ...(number === null ? [] : [number])].map(encodeURIComponent).join("/")}`;
  const named = Object.entries(NAMED).filter(([member]) => members[member] !== START[member]);
  const pairs = [...named.map(([member, name]) => [name, members[member]]), ...(show.length ? [["show", show.join(",")]] : [])];
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

function placeOf(location) {
  const [, folder, key, number] = location.pathname.split("/").map(decodeURIComponent);
  const given = new URLSearchParams(location.search);
  const members = Object.fromEntries(Object.entries(NAMED).map(([member, name]) => [member, given.get(name) ?? START[member]]));
  const show = (given.get("show") ?? "").split(",").filter((name) => CHIPS.some((chip) => chip[0] === name));
  const view = members.view in VIEWS ? members.view : START.view;
  const place = { ...START, ...members, view, show, number: Number(number) || null };
  return { ...place, home: folder === "runs" ? "runs" : START.home, key: !key ? null : folder === "r" ? RUN + key : key };
}
