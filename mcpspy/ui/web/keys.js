// The keys of the page: those of the terminal UI, where it has the same action.

const KEYS = [
  ["/", "filter: the language of the terminal UI (docs/filter.md)", () => byId("query").select()],
  ["j", "next row or session; arrows, Page Down and End work in the list", () => move(1)],
  ["k", "previous row or session", () => move(-1)],
  ["Enter", "open; in the filter, go to the first match", null],
  ["Esc", "close the message or the report; in the filter, clear it", null],
  ["g", "first row", () => move(-Infinity)],
  ["G", "last row; the list of a live session then follows", () => move(Infinity)],
  ["e", "next error", () => rows && seek(1)],
  ["E", "previous error", () => rows && seek(-1)],
  ["n", "next word of the filter in the message", () => nextHit(1)],
  ["N", "previous word of the filter", () => nextHit(-1)],
  ["i", "hold the messages that match the filter, or stop (--allow-control)", () => control.toggle()],
  ["r", "send the open request again, with changes (--allow-control)", () => control.resend()],
  ["d", "compare: press d on one session or request, then on another", () => (place.key === null ? list().choose?.() : compareRow())],
  ["1", "messages, or the list of sessions", () => show("messages", "sessions")],
  ["2", "statistics, or the list of runs", () => show("stats", "runs")],
  ["3", "capabilities", () => show("capabilities")],
  ["4", "lint findings", () => show("findings")],
  ["5", "timeline; there, arrows select, + and - zoom, [ and ] move, 0 shows everything", () => show("timeline")],
  ["6", "context cost", () => show("context")],
  ["q", "all sessions, or all runs", () => go({ key: null })],
  ["y", "copy the request, or the message", () => openRow && copyText(session.body(openRow.body))],
  ["Y", "copy the response", () => openRow?.answer >= 0 && copyText(session.body(openRow.answer))],
  ["t", "theme", () => byId("theme").click()],
  ["?", "show these keys", () => showKeys(KEYS)],
];

function move(by) {
  if (place.key === null) list().focus(by);
  else if (place.view === "messages") listing.move(by);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const { key, target } = event;
  if (target === byId("query")) {
    if (key === "Escape") {
      event.preventDefault();
      if (target.value) {
        target.value = "";
        search();
      } else leaveQuery();
    } else if (key === "Enter" || key === "ArrowDown") {
      event.preventDefault();
      search();
      leaveQuery();
    }
    return;
  }
  const inList = target === byId("rows") || target === document.body || list().element.contains(target);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: listing.inView, PageUp: -listing.inView, Home: -Infinity, End: Infinity };
  const act = KEYS.find(([name, , does]) => does && name === key)?.[2];
  if (key === "Escape") {
    if (place.view !== "messages") show("messages");
    else if (openRow) close();
    else if (place.key !== null) go({ key: null });
  } else if (key === "Enter" && place.key !== null && inList && rows?.at(listing.cursor)) {
    openNumber(rows.at(listing.cursor).number).then(() => byId("detail").focus());
  } else if (inList && key in moves) move(moves[key]);
  else if (act) act();
  else return;
  event.preventDefault();
}

function leaveQuery() {
  if (place.key === null) return list().focus();
  byId("rows").focus();
  if (listing.cursor < 0) listing.move(1);
}
