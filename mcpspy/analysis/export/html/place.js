// The place that the address names: a list, or a session or run with row, filter and view.

const CHIPS = [
  ["errors", "is:error", "bad"],
  ["unanswered", "is:unanswered", "bad"],
  ["slow", "is:slow", "open"],
  ["pending", "is:pending", "open"],
  ["protocol issues", "is:issue", "issue"],
  ["notifications", "is:notification", "quiet"],
  ["stderr", "is:stderr", "quiet"],
  ["HTTP", "note:http or note:http-end or note:sse or note:part", "quiet"],
];

/** The place with nothing chosen: its members and their values when the address does not name them. */
const START = {
  home: "sessions",
  key: null,
  number: null,
  q: "",
  show: [],
  view: "messages",
  order: "time",
  other: "",
  old: "",
  now: "",
  span: "",
};

const NAMED = { q: "q", view: "view", order: "order", other: "with", old: "old", now: "new", span: "t" }; // Member → parameter.

/** Return the parameters of a place as they are in its address, with a question mark if there are any. */
function parametersOf({ show, ...members }) {
  const named = Object.entries(NAMED).filter(([member]) => members[member] !== START[member]);
  const pairs = [...named.map(([member, name]) => [name, members[member]]), ...(show.length ? [["show", show.join(",")]] : [])];
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** Return the place of the parameters of an address; views and chips that do not exist are ignored. */
function placeOf(parameters, { key, number, home = START.home }) {
  const given = new URLSearchParams(parameters);
  const members = Object.fromEntries(Object.entries(NAMED).map(([member, name]) => [member, given.get(name) ?? START[member]]));
  const show = (given.get("show") ?? "").split(",").filter((name) => CHIPS.some((chip) => chip[0] === name));
  const view = members.view in source.tabs ? members.view : START.view;
  return { ...START, ...members, view, show, home, key, number: Number(number) || null };
}

/** Return the filter of the search box and the chips together, in the filter language. */
function queryText() {
  const chosen = source.chips.filter(([name]) => place.show.includes(name)).map(([, text]) => text);
  if (!chosen.length) return place.q;
  return [place.q.trim() && `(${place.q})`, `(${chosen.join(" or ")})`].filter(Boolean).join(" ");
}

/** Return the ends of the time range of the place in seconds, if it has one. */
function spanOf() {
  return place.span ? place.span.split("_").map(Number) : null;
}
