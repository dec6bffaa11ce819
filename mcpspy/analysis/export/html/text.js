// Original text, one section at a time.

const STRETCH = 20_000; // Characters of a section of text that is not JSON.

function plainText(text, words = []) {
  const [first] = placesOf(text, words);
  const box = make("pre.text");
  box.append(...stretches(text, Math.max(STRETCH, first?.[1] ?? 0), STRETCH, make("span"), true));
  return box;
}

/** Return an element with the beginning of a text, and a button for the next section if there is one. */
function stretches(text, first, step, box, lines = false) {
  const more = make("button.more", { type: "button" });
  let shown = 0;
  const show = (count) => {
    box.append(...visible(text.slice(shown, shown + count), lines));
    shown += count;
    if (shown >= text.length) more.remove();
    else more.textContent = `… ${size(text.length - shown)} more`;
  };
  more.addEventListener("click", () => show(step));
  show(first);
  return shown < text.length ? [box, more] : [box];
}
