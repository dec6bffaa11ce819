// Completion of the filter line: a list below it. The server decides what may follow; this only shows and takes it.

const SHOWN_TERMS = 12;

class Completion {
  constructor(input) {
    this.input = input;
    this.chosen = -1;
    this.asked = 0; // A late answer to an earlier text is dropped.
    this.list = make("ul", { id: "terms", role: "listbox", ariaLabel: "Completions", hidden: true });
    input.closest(".bar").append(this.list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": "terms", "aria-autocomplete": "list" }))
      input.setAttribute(name, value);
    this.close();
    input.addEventListener("input", () => this.ask());
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.pressed(event));
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault(); // The input keeps the focus.
      this.take(event.target.closest("[role=option]"));
    });
  }

  async ask() {
    const { value } = this.input;
    const asked = ++this.asked;
    const path = place.key === null ? "complete" : inSession("complete");
    let terms = [];
    try {
      if (value) ({ terms } = await fetchJson(path, { q: value }));
    } catch {
      return this.close(); // The filter itself reports the error.
    }
    if (asked !== this.asked || document.activeElement !== this.input) return;
    this.show(terms.filter((term) => term !== value).slice(0, SHOWN_TERMS));
  }

  show(terms) {
    const start = this.input.value.lastIndexOf(" ") + 1;
    this.chosen = -1;
    this.list.replaceChildren(
      ...terms.map((term, i) => {
        const option = make("li", { role: "option", id: `term-${i}`, ariaSelected: "false" }, ...visible(term.slice(start)));
        option.dataset.text = term;
        return option;
      }),
    );
    this.list.hidden = !terms.length;
    this.input.setAttribute("aria-expanded", String(terms.length > 0));
    this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.asked++;
    this.show([]);
  }

  take(option) {
    if (!option) return;
    this.input.value = option.dataset.text;
    this.close();
    search();
    if (/[:]$/.test(this.input.value)) this.ask();
  }

  /** Handle a key while the list is open, before the page does. */
  pressed(event) {
    const options = [...this.list.children];
    if (!options.length || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const isTaken = event.key === "Tab" ? !event.shiftKey : event.key === "Enter" && this.chosen >= 0;
    if (by) this.choose((this.chosen + by + (this.chosen < 0 && by < 0) + options.length) % options.length);
    else if (isTaken) this.take(options[Math.max(this.chosen, 0)]);
    else if (event.key === "Escape") this.close();
    else {
      if (event.key === "Enter") this.close();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  choose(number) {
    this.chosen = number;
    for (const [i, option] of [...this.list.children].entries()) option.ariaSelected = String(i === number);
    this.input.setAttribute("aria-activedescendant", `term-${number}`);
  }
}
