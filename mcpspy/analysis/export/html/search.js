// Highlighted words: those of the filter that may occur in a message.
// Owns the matching of words in JSON: blanks between tokens are ignored, and so is the escaping of characters.

const MARKED = 2000; // Maximum number of marked hits: more do not help, and take seconds.

/** Return the words of a query as patterns, each with a flag if it must be absent. A JSON fragment is one word. */
function wordsOf(query) {
  if (/":/.test(query)) return [{ without: false, pattern: patternOf(query.trim()) }];
  const words = [];
  for (const [, minus, quoted, plain] of query.matchAll(/(-(?!\d))?(?:"([^"]+)"?|(\S+))/g)) {
    words.push({ without: minus !== undefined, pattern: patternOf(quoted ?? plain) });
  }
  return words;
}

/** Return the words of a filter that may occur in a message, to highlight them. */
function wordsToMark(filter) {
  const words = filter.match(/(?:[-!]?\w+:)?"[^"]*"|[^\s()]+/g) ?? [];
  const plain = words.map((word) => word.replace(/^text:/, ""));
  return wordsOf(plain.filter((word) => word.startsWith('"') || !/^[-!]|[:<>=]|^\/|^(and|or|not)$/i.test(word)).join(" "));
}

function patternOf(text) {
  const forms = [...new Set([text, escaped(text), escaped(text).replaceAll("/", "\\/")])];
  return new RegExp(forms.map(flexible).join("|"), "giu");
}

/** Return a text as in a JSON string that is limited to ASCII. */
function escaped(text) {
  const quoted = JSON.stringify(text).slice(1, -1);
  return quoted.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Return a pattern for a text, that allows blanks around JSON tokens. */
function flexible(text) {
  return text
    .replace(/\s*([{}[\]:,])\s*/g, "$1")
    .replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
    .replace(/\\[{}[\]]|[:,]/g, "\\s*$&\\s*")
    .replace(/ /g, "\\s+");
}

function occurs(pattern, text) {
  pattern.lastIndex = 0;
  return pattern.test(text);
}

/** Yield start and end of each word found in a text. */
function* placesOf(text, words) {
  for (const { without, pattern } of words) {
    if (without) continue;
    pattern.lastIndex = 0;
    for (const found of text.matchAll(pattern)) {
      if (found[0].length) yield [found.index, found.index + found[0].length];
    }
  }
}

/** Highlight the words in an element, under a name used in the style; return the ranges in order. */
function highlight(name, elements, words) {
  const ranges = [];
  for (const element of words.length ? elements : []) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const nodes = [];
    let text = "";
    while (walker.nextNode()) {
      nodes.push([text.length, walker.currentNode]);
      text += walker.currentNode.data;
    }
    const place = (offset, isEnd) => {
      let low = 0;
      let high = nodes.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (isEnd ? nodes[middle][0] < offset : nodes[middle][0] <= offset) low = middle;
        else high = middle - 1;
      }
      return [nodes[low][1], offset - nodes[low][0]];
    };
    for (const [begin, end] of placesOf(text, words)) {
      if (ranges.length === MARKED) break;
      const range = new Range();
      range.setStart(...place(begin, false));
      range.setEnd(...place(end, true));
      ranges.push(range);
    }
  }
  ranges.sort((one, other) => one.compareBoundaryPoints(Range.START_TO_START, other));
  if (typeof Highlight === "function" && CSS.highlights) {
    if (ranges.length) CSS.highlights.set(name, new Highlight(...ranges));
    else CSS.highlights.delete(name);
  }
  return ranges;
}
