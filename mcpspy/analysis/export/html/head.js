// The head of the page: the facts of the session.

/** Return a number of messages or requests in words, and how many of them had which outcome. */
function countedWords(words, outcomes) {
  const shown = outcomes.filter(([count]) => count).map(([count, outcome]) => `${commas(count)} ${outcome}`);
  return words + (shown.length ? ` (${shown.join(", ")})` : "");
}

/** Show the facts of the session; `more` are further pairs of a name and a text, or a list of elements. */
function fillFacts(facts, contents, more) {
  const pairs = [
    ["server", facts.server],
    ["client", facts.client],
    ["protocol", facts.revision],
    ["transport", facts.transport],
    ["started", clock(facts.started, 0).replace(/\.\d+/, "") || facts.started],
    ["duration", duration(facts.lasted)],
    ["contents", contents],
    ...more,
  ].filter(([, value]) => value);
  byId("facts").replaceChildren(
    ...pairs.map(([name, value]) =>
      make(`div.${name}`, {}, make("dt", {}, name), make("dd", {}, ...(typeof value === "string" ? visible(value) : value))),
    ),
  );
}
