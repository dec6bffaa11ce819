// The filter language of `mcpspy show -q` (docs/filter.md), for rows in the page.
// The grammar is in core/query, and so are the tables of names, which the page contains; a table of cases is tested
// with both. Findings of lint are not in the page.

const FIELD = /([^\W\d][\w-]*)(\s*)(:?(?:[<>]=?|!?=)|:)/y;
const ROOT = /\.?(params|result|error)(?=[.[:=!<>])/y;
const OTHER_ROOT = /\.?([^\W\d][\w-]*)[.[][\w.[\]"$@-]*(?::(?!\/\/)|!?=|[<>])/y;
const STEP = /\.([\p{L}\p{N}_$@-]+)|\.?\["((?:[^"\\]|\\.)*)"\]|\.?\[(-?[0-9]{1,9}|)\]/suy;
const AFTER_PATH = /(\s*)(:?(?:[<>]=?|!?=)|:)/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/sy;
const PATTERN = /\/((?:[^/\\]|\\.|\/(?!i?(?:[\s)|]|$)))+)\/(i?)(?=[\s)|]|$)/sy;
const NUMBER = /^(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([^\W\d_]*|[µμ]s)$/;
const JSON_NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const COMPARE = {
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  "=": (a, b) => a === b,
  ":": (a, b) => a === b,
  "!=": (a, b) => a === b,
};
const DEEPEST = 50; // Levels of parentheses.

class FilterError extends Error {}

function fail(words) {
  throw new FilterError(words);
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Return the tokens of a filter: operators as text, conditions as objects with `field`, `name`, `op`, `value`, `raw`. */
function tokensOf(text, tables) {
  const tokens = [];
  const signs = {
    "-": "not",
    "!": "not",
    not: "not",
    "&": "and",
    "&&": "and",
    and: "and",
    "|": "or",
    "||": "or",
    or: "or",
    "(": "(",
    ")": ")",
  };
  let at = 0;
  const skip = () => (at = matchAt(/\s*/y, text, at).index + matchAt(/\s*/y, text, at)[0].length);
  const valueAt = (field, name, op) => {
    if (text[at] !== '"') {
      const raw = matchAt(/[^\s()|]*/y, text, at)[0];
      at += raw.length;
      return { field, name, op, value: raw, raw, isQuoted: false };
    }
    const quoted = matchAt(QUOTED, text, at) ?? fail("unclosed quote");
    if (!quoted[1] && op === ":") fail("empty quotes: expected a value");
    at += quoted[0].length;
    return { field, name, op, value: quoted[1].replace(/\\(["\\])/g, "$1"), raw: quoted[0], isQuoted: true };
  };
  const regexAt = (place) => {
    const found = matchAt(PATTERN, text, place);
    if (!found) return null;
    at = place + found[0].length;
    return { field: "/", name: "", op: found[2], value: found[1], raw: found[0], isQuoted: false };
  };
  const needed = (atom, name, op) => (atom.raw ? atom : fail(`expected a value after '${name}${op}'`));
  const compared = (op, end) => {
    at = end;
    if (op !== ":") skip();
    return op === ":" ? op : op.replace(/^:/, "");
  };
  const pathAt = () => {
    const root = matchAt(ROOT, text, at);
    if (!root) return null;
    const begin = at + root[0].length;
    let end = begin;
    for (let step = matchAt(STEP, text, end); step; step = matchAt(STEP, text, end)) end += step[0].length;
    const after = matchAt(AFTER_PATH, text, end);
    if (!after) return ".[".includes(text[end] ?? " ") ? fail('bad step: use .name, ["any name"], [0], [-1] or []') : null;
    if (after[1] && (after[2].startsWith(":") || end === begin)) return null;
    const name = text.slice(at + root[0].length - root[1].length, end);
    const op = compared(after[2], end + after[0].length);
    return needed(valueAt(".", name, op), name, op);
  };
  const fieldAt = () => {
    const found = matchAt(FIELD, text, at);
    if (!found) return null;
    const [whole, name, space, sign] = found;
    if (text.startsWith("://", at + name.length)) return null;
    const field = Object.hasOwn(tables.fields, name.toLowerCase()) ? tables.fields[name.toLowerCase()] : undefined;
    if (field === undefined) {
      if (space) return null;
      fail(
        `unknown field ${name}: the fields are ${[...new Set(Object.values(tables.fields))].join(", ")}. Put a word that contains ${sign} in quotes`,
      );
    }
    const isNumber = tables.numbers.includes(field);
    if (space && (!isNumber || sign.startsWith(":"))) return null;
    let op = sign;
    if (isNumber) op = compared(sign, at + whole.length);
    else if (sign.startsWith(":")) [op, at] = [":", at + name.length + space.length + 1];
    else at += whole.length;
    return (field === "text" && regexAt(at)) || needed(valueAt(field, name, op), name, op);
  };
  for (skip(); at < text.length; skip()) {
    const sign = matchAt(/[()!-]|\|\|?|&&?/y, text, at);
    if (sign) {
      tokens.push(signs[sign[0]]);
      at += sign[0].length;
      continue;
    }
    const order = matchAt(/[<>]=?/y, text, at);
    let atom;
    if (text[at] === '"') atom = valueAt("", "", ":");
    else if (text[at] === "/") atom = regexAt(at) ?? fail("unclosed regex: end it with /, or put a path in quotes");
    else if (order) {
      at += order[0].length;
      skip();
      atom = needed(valueAt("<>", "", order[0]), "", order[0]);
    } else {
      atom = pathAt() ?? fieldAt();
      const other = atom ? null : matchAt(OTHER_ROOT, text, at);
      if (other) fail(`unknown member ${other[1]}: a path begins with params, result or error. Put a word that contains : or = in quotes`);
      if (!atom && ":=".includes(text[at])) fail(`expected a field before '${text[at]}', without a blank between`);
      atom ??= valueAt("", "", ":");
      if (atom.field === "" && !atom.isQuoted && Object.hasOwn(signs, atom.value.toLowerCase())) atom = signs[atom.value.toLowerCase()];
    }
    tokens.push(atom);
  }
  return tokens;
}

/** Return a filter as a function of items (`itemOf`); `end` is the last moment of the session. Throw FilterError. */
function compileFilter(text, tables, end) {
  const tokens = tokensOf(text, tables);
  if (!tokens.length) return () => true;
  let at = 0;
  let depth = 0;
  const some = () => {
    const parts = [every()];
    while (tokens[at] === "or") {
      at++;
      parts.push(every());
    }
    return parts.length > 1 ? (item) => parts.some((part) => part(item)) : parts[0];
  };
  const every = () => {
    const parts = [];
    do {
      if (parts.length && tokens[at] === "and") at++;
      parts.push(one());
    } while (at < tokens.length && tokens[at] !== "or" && tokens[at] !== ")");
    parts.sort((a, b) => Boolean(a.reads) - Boolean(b.reads)); // Conditions that read no text go first.
    const test = (item) => parts.every((part) => part(item));
    return parts.length > 1 ? Object.assign(test, { reads: parts.at(-1).reads }) : parts[0];
  };
  const one = () => {
    let isNegated = false;
    for (; tokens[at] === "not"; at++) isNegated = !isNegated;
    const token = tokens[at++];
    let test;
    if (token === "(") {
      if (++depth > DEEPEST) fail(`parentheses are nested deeper than ${DEEPEST} levels`);
      if (tokens[at] === ")") fail("empty parentheses");
      if (at === tokens.length) fail("unclosed (");
      test = some();
      if (tokens[at++] !== ")") fail("unclosed (");
      depth--;
    } else if (typeof token === "object") {
      test = conditionOf(token, tables, end);
      if (token.op === "!=") isNegated = !isNegated;
    } else
      fail(
        token === ")" ? "unmatched )" : token ? `expected a condition before '${token}'` : `expected a condition after '${tokens[at - 2]}'`,
      );
    const { reads } = test;
    return isNegated ? Object.assign((item) => !test(item), { reads }) : test;
  };
  const whole = some();
  if (at < tokens.length) fail("unmatched )");
  return whole;
}

const reading = (test) => Object.assign(test, { reads: true });

function noOrder(atom) {
  if ("<>".includes(atom.op[0])) fail(`${atom.name} cannot be compared with ${atom.op}: write ${atom.name}:${atom.raw}`);
}

/** Return the test of a text: exact, a pattern with * and ?, or a part; case is ignored except after =. */
function textTest(atom) {
  const { value, op, isQuoted } = atom;
  if (op === "=" || op === "!=") return (text) => text === value;
  noOrder(atom);
  const wanted = value.toLowerCase();
  if (isQuoted || !/[*?]/.test(wanted)) return (text) => text.toLowerCase().includes(wanted);
  const glob = new RegExp(
    `^${wanted
      .replace(/[\\^$.+()[\]{}|/]/g, "\\$&")
      .replace(/\*+/g, ".*")
      .replaceAll("?", ".")}$`,
    "su",
  );
  return (text) => text !== "" && (text.toLowerCase().includes(wanted) || glob.test(text.toLowerCase()));
}

/** Return the test of one condition, without its negation. */
function conditionOf(atom, tables, end) {
  const { field, value, op, name, raw } = atom;
  const isAnswer = (item) => item.kind === "result" || item.kind === "error";
  switch (field) {
    case "": {
      const found = textTest(atom);
      return (item) => found(item.method) || found(item.subject) || (!item.side && found(item.kind));
    }
    case "/":
      return patternTest(atom);
    case ".":
      return pathTest(atom);
    case "method":
    case "subject":
    case "stream": {
      const found = textTest(atom);
      return (item) => found(item[field]);
    }
    case "tool":
    case "prompt":
    case "uri": {
      const [found, methods] = [textTest(atom), tables.subjects[field]];
      return (item) => methods.includes(item.method) && found(item.subject);
    }
    case "id":
      return idTest(atom, isAnswer);
    case "dir": {
      noOrder(atom);
      const side =
        Object.keys(tables.sides).find((each) => tables.sides[each].includes(value.toLowerCase())) ??
        unknown(atom, "sender", ["client", "server", "c2s", "s2c", "->", "<-"]);
      return (item) => item.side === side;
    }
    case "kind":
    case "note":
      return kindTest(atom, tables);
    case "status": {
      noOrder(atom);
      if (/^-?[0-9]+$/.test(value)) return (item) => item.code === Number(value);
      return stateTest(value, op !== ":", tables) ?? unknown(atom, "status", Object.keys(tables.statuses));
    }
    case "is":
      return isTest(atom, tables);
    case "lint":
      return fail("findings are available only in mcpspy tui and mcpspy show --lint");
    case "text": {
      if (op !== ":") fail(`${name} needs a colon: write ${name}:${raw}`);
      const lower = value.toLowerCase();
      const forms = new Set([
        lower,
        ...[lower, value].flatMap((each) => [JSON.stringify(each).slice(1, -1), escaped(each)]).map((each) => each.toLowerCase()),
      ]);
      return reading((item) => [...forms].some((form) => item.text.toLowerCase().includes(form)));
    }
    case "since":
    case "until": {
      if (op !== ":") fail(`${name} needs a colon: write ${name}:${raw}`);
      const [amount, unit] = amountOf(atom, "a time");
      const bound = amount * factorOf(atom, unit, { "": 1, ...tables.times }) + (value.startsWith("-") ? end : 0);
      return field === "since" ? (item) => item.at >= bound : (item) => item.at <= bound;
    }
    default:
      return numberTest(atom, tables);
  }
}

function unknown(atom, noun, known) {
  return fail(`unknown ${noun} "${atom.value}": use one of ${[...new Set(known)].join(", ")}`);
}

function amountOf(atom, what = "a number") {
  const found = NUMBER.exec(atom.value) ?? fail(`${atom.value} is not ${what}`);
  return [Number(found[1]), found[2].toLowerCase()];
}

function factorOf(atom, unit, units) {
  return Object.hasOwn(units, unit)
    ? units[unit]
    : fail(unit ? `${atom.name || atom.op} does not take the unit "${unit}"` : `${atom.value} needs a unit`);
}

function numberTest(atom, { times, sizes }) {
  const { value, op, name } = atom;
  const [amount, unit] = amountOf(atom);
  let { field } = atom;
  if (field === "<>") {
    if (!unit) fail(`${value} needs a unit (example: ${op}200ms or ${op}10kb)`);
    if (unit === "m") fail(`${value} is ambiguous: write ${amount}min or ${amount}mb`);
    field = Object.hasOwn(sizes, unit) ? "size" : "latency";
  }
  const compare = COMPARE[op];
  if (field === "code") {
    if (unit) fail(`code takes a number, not "${value}"`);
    return (item) => item.code !== null && compare(item.code, amount);
  }
  if (field === "latency" && [":", "=", "!="].includes(op)) fail(`${name} needs < or >: write ${name}>${value}`);
  const bound = amount * factorOf(atom, unit, field === "size" ? { "": 1, ...sizes } : field === "time" ? { "": 1, ...times } : times);
  if (field === "latency") return (item) => item.latency !== null && compare(item.latency, bound);
  return field === "size" ? (item) => compare(item.size, bound) : (item) => compare(item.at, bound);
}

/** Compare ids by value: 1 matches 1 and 1.0, "1" the string. With `:`, 1 also matches the string. */
function idTest(atom, isAnswer) {
  noOrder(atom);
  const { value, isQuoted } = atom;
  const isExact = atom.op !== ":";
  if (value.includes("*") && !isQuoted && !isExact) {
    const found = textTest(atom);
    return (item) => found(item.id.replace(/^"+|"+$/g, ""));
  }
  const string = JSON.stringify(value);
  if (isQuoted) return (item) => item.id === string;
  if (JSON_NUMBER.test(value)) {
    const same = (id) =>
      id === value || (JSON_NUMBER.test(id) && Number(id) === Number(value) && !(/^-?\d+$/.test(id) && /^-?\d+$/.test(value)));
    return (item) => same(item.id) || (!isExact && item.id === string);
  }
  const isLiteral = ["null", "true", "false"].includes(value);
  const forms = isLiteral ? (isExact ? [value] : [value, string]) : [string];
  if (value === "null") return (item) => forms.includes(item.id) || (!item.id && isAnswer(item) && item.side !== "");
  return (item) => forms.includes(item.id);
}

function kindTest(atom, { kinds, notes, groups, sameKind }) {
  const [ofNote, value] = [atom.field === "note", atom.value.toLowerCase()];
  const same = Object.hasOwn(sameKind, value) && !ofNote ? sameKind[value] : null;
  if (same) return (item) => same.includes(item.kind) && item.side !== "";
  if (value === "note") return (item) => !item.side;
  if (value === "batch") return (item) => item.isBatch;
  const found = textTest(atom);
  const known = ofNote ? notes : [...kinds, ...groups];
  if (!atom.isQuoted && !known.some(found)) unknown(atom, ofNote ? "kind of event" : "kind", known);
  return (item) => (!ofNote || !item.side) && found(item.kind);
}

/** Return the test for the name of a status; null if it is unknown. */
function stateTest(value, isExact, { statuses, sameStatus }) {
  let name = value.toLowerCase().replace(/[\s_-]/g, "");
  if (Object.hasOwn(sameStatus, name)) name = sameStatus[name];
  if (name === "error" && isExact) name = "rpcerror";
  return Object.hasOwn(statuses, name) ? (item) => statuses[name].includes(item.status) : null;
}

function isTest(atom, tables) {
  noOrder(atom);
  const value = atom.value.toLowerCase();
  const isSlow = (item) => item.latency !== null && item.latency > tables.slow;
  if (value === "slow") return isSlow;
  if (value === "problem") {
    return (item) =>
      tables.statuses.error.includes(item.status) ||
      tables.statuses.noanswer.includes(item.status) ||
      item.hasIssue ||
      isSlow(item) ||
      item.isFailedEvent;
  }
  if (value === "issue" || value === "odd") return (item) => item.hasIssue;
  if (value === "finding") fail("findings are available only in mcpspy tui and mcpspy show --lint");
  const isSame = Object.hasOwn(tables.sameKind, value);
  const isKind = tables.kinds.includes(value) || isSame || tables.groups.includes(value);
  const state = stateTest(value, false, tables);
  if (state) return state;
  if (isKind) return kindTest({ ...atom, field: "is", op: isSame ? ":" : "=" }, tables);
  return unknown(atom, "status or kind", ["problem", "slow", "issue", ...Object.keys(tables.statuses), ...tables.kinds, ...tables.groups]);
}

/** Search with a regular expression of RE2, as one of JavaScript; what only one of them has is refused. */
function patternTest({ value, op }) {
  const banned = /\(\?(?:[=!]|<[=!]|>|P=|\(|#)|(?<!\\)(?:\\\\)*\\[1-9CQEG]|[*+?}]\+|\[\[:/.exec(value);
  if (banned) fail(`${banned[0]} is not supported in an exported page: use mcpspy show -q`);
  const [, flags = "", body] = /^(?:\(\?([ims]+)\))?(.*)$/su.exec(value);
  const named = body
    .replaceAll("(?P<", "(?<")
    .replace(/\\([sSzA])|\\x\{([0-9a-fA-F]+)\}/g, (_all, letter, code) =>
      code ? `\\u{${code}}` : { s: "[\\t\\n\\f\\r ]", S: "[^\\t\\n\\f\\r ]", z: "(?![^])", A: "(?<![^])" }[letter],
    );
  let pattern;
  try {
    pattern = new RegExp(named.replace(/\\([pP])([A-Z])/g, "\\$1{$2}"), [...new Set(`u${op}${flags}`)].join(""));
  } catch (error) {
    fail(`invalid regex: ${error.message.replace(/^Invalid regular expression: /, "")}`);
  }
  return reading((item) => pattern.test(item.text));
}

/** Test the values at a path into the message itself. */
function pathTest(atom) {
  const root = /^[a-z]+/.exec(atom.name)[0];
  const steps = [...atom.name.slice(root.length).matchAll(new RegExp(STEP.source, "gsu"))].map(([, plain, quoted, index]) =>
    quoted !== undefined ? quoted.replace(/\\(["\\])/g, "$1") : (plain ?? (index ? Number(index) : null)),
  );
  const matches = valueTest(atom);
  const step = (value, name) => {
    if (value === null || typeof value !== "object") return [];
    if (name === null) return Object.values(value);
    if (!Array.isArray(value)) return typeof name === "string" && Object.hasOwn(value, name) ? [value[name]] : [];
    return typeof name === "number" && name < value.length && name >= -value.length ? [value.at(name)] : [];
  };
  return reading((item) => {
    const message = item.message(root);
    if (message === null || typeof message !== "object" || !Object.hasOwn(message, root)) return false;
    return steps.reduce((values, name) => values.flatMap((value) => step(value, name)), [message[root]]).some(matches);
  });
}

function literal(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function valueTest(atom) {
  const { op, value, isQuoted, raw, name } = atom;
  if (op === "=" || op === "!=") {
    const wanted = JSON.stringify(isQuoted ? value : literal(raw));
    return (found) => JSON.stringify(found) === wanted;
  }
  if (op !== ":") {
    if (isQuoted || !JSON_NUMBER.test(value)) fail(`${raw} is not a number (example: ${name}>5)`);
    return (found) => typeof found === "number" && COMPARE[op](found, Number(value));
  }
  const like = textTest(atom);
  if (value === "*" && !isQuoted) return () => true;
  const [lower, wanted] = [value.toLowerCase(), literal(value)];
  return (found) => {
    if (typeof found === "string") return like(found);
    if (typeof found === "object" && found !== null) return like(JSON.stringify(found));
    if (typeof found === "number" && typeof wanted === "number") return found === wanted;
    const text = JSON.stringify(found);
    return text === lower || (lower.includes("*") && like(text));
  };
}

/** Return what a filter tests of a row. */
function itemOf(row) {
  const isNote = ["http", "stderr", "note"].includes(row.kind);
  const hasMethod = !isNote && !["malformed", "damaged"].includes(row.kind) && row.method !== "(response)";
  const parsed = (body) => (body >= 0 ? literal(file.body(body)) : null);
  return {
    at: row.at,
    side: row.side,
    kind: isNote ? row.method : row.kind,
    method: hasMethod ? row.method : "",
    get subject() {
      if (!hasMethod || row.method !== "notifications/progress") return hasMethod ? row.subject : "";
      const token = parsed(row.body)?.params?.progressToken ?? ""; // The row shows the progress in its place.
      return typeof token === "string" ? token : JSON.stringify(token);
    },
    id: row.id,
    status: row.apart ? "" : row.state,
    latency: row.latency,
    size: isNote ? 0 : row.size + row.answerSize,
    stream: row.stream,
    hasIssue: row.flaws.length > 0,
    isFailedEvent: row.failed,
    isBatch: row.batch,
    code: row.code,
    get text() {
      const words = `${row.subject} ${row.status}`;
      if (row.kind === "http") return [words, JSON.parse(file.body(row.body)).body ?? ""].join("\n").trimEnd();
      if (isNote && row.kind !== "stderr") return words;
      if (row.kind === "request" && row.answer < 0 && row.tone === "bad") return `${file.body(row.body)}\n${row.status}`;
      return row.answer >= 0 ? `${file.body(row.body)}\n${file.body(row.answer)}` : file.body(row.body);
    },
    message(member) {
      if (isNote) return null;
      if (member !== "params") return parsed(row.kind === "request" ? row.answer : row.body);
      return parsed(row.kind === "result" || row.kind === "error" ? (file.requestOf(row)?.body ?? -1) : row.body);
    },
  };
}
