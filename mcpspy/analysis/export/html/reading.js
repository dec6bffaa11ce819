// Search hits in the open message, and the dialog of keys.
// Owns the hit that was visited last.

let hits = [];
let hit = -1;

/** Highlight the words in the open message, if one is open. */
function markHits(words) {
  const detail = byId("detail");
  hits = detail.hidden
    ? []
    : highlight("found", detail.querySelectorAll("h2, .badge, .flaws, .along, .sides :is(.body, .view), .http"), words);
  hit = -1;
  if (detail.hidden) highlight("found", [], []);
}

/** Go to the next search hit in the message. */
function nextHit(by) {
  if (!hits.length) return announce("no search hits in this message");
  hit = (hit + by + hits.length + (hit < 0 && by < 0 ? 1 : 0)) % hits.length;
  hits[hit].startContainer.parentElement.scrollIntoView({ block: "center", inline: "nearest" });
  if (CSS.highlights) CSS.highlights.set("current", new Highlight(hits[hit]));
  announce(`${hit + 1} of ${hits.length}`);
}

/** Show the keys, each with its words, and more elements below them. */
function showKeys(keys, ...more) {
  const dialog = byId("keys");
  const rows = keys.map(([key, words]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)));
  dialog.replaceChildren(
    make("h2", {}, "Keys"),
    make("dl", {}, ...rows),
    ...more,
    button("Close", "Esc", () => dialog.close()),
  );
  dialog.showModal();
}
