// Text that is no JSON, as it was, a stretch at a time.

const STRETCH = 20_000; // Characters that are shown together.

function plainText(text, words = []) {
  const box = make("pre.text");
  let shown = 0;
  const more = make("button.more", { type: "button" });
  const show = (until) => {
    more.before(...visible(text.slice(shown, until), true));
    shown = until;
    if (shown >= text.length) more.remove();
    else more.textContent = `… ${size(text.length - shown)} more`;
  };
  more.addEventListener("click", () => show(shown + STRETCH));
  box.append(more);
  const last = Math.max(0, ...[...placesOf(text, words)].map(([, end]) => end));
  show(Math.max(STRETCH, last));
  return box;
}
