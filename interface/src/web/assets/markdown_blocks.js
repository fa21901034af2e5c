// The block structure of the small Markdown subset that answers are shown in: paragraphs, headings, fenced code,
// lists, tables, quotes, rules. Pure functions over strings. Every block keeps its source, so that a growing text can be compared
// block by block and only what changed is drawn again.

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
/** Lists and quotes nest no deeper than this; what a hostile text nests further stays text. */
const DEPTH = 8;
const DELIMITER_CELL = /^\s*:?-+:?\s*$/;

const isBlank = (line) => line.trim() === '';

/** The blocks of `text`, in order. */
export function blocksOf(text) {
  return parse(text.split('\n'), 0);
}

function parse(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const block = fence(lines, at) ?? heading(lines, at) ?? rule(lines, at) ?? quote(lines, at, depth) ?? table(lines, at) ?? list(lines, at, depth) ?? paragraph(lines, at);
    block.source = lines.slice(at, block.end).join('\n');
    blocks.push(block);
    at = block.end;
  }
  return blocks;
}

function fence(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  const [, indent, marks, info] = open;
  const close = new RegExp(`^ {0,3}\\${marks[0]}{${marks.length},}[ \\t]*$`);
  const code = [];
  let end = at + 1;
  while (end < lines.length && !close.test(lines[end])) {
    code.push(lines[end].slice(0, indent.length).trim() === '' ? lines[end].slice(indent.length) : lines[end]);
    end += 1;
  }
  return { kind: 'code', language: info.trim().split(/\s/, 1)[0], code: code.join('\n'), end: Math.min(end + 1, lines.length) };
}

function heading(lines, at) {
  const match = HEADING.exec(lines[at]);
  return match && { kind: 'heading', level: match[1].length, text: match[2].trimEnd().replace(/[ \t]#+$/, ''), end: at + 1 };
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? { kind: 'rule', end: at + 1 } : null;
}

function quote(lines, at, depth) {
  if (depth >= DEPTH || !QUOTE.test(lines[at])) return null;
  const quoted = [];
  let end = at;
  for (let match = QUOTE.exec(lines[end]); match; match = end < lines.length && QUOTE.exec(lines[end])) {
    quoted.push(match[1]);
    end += 1;
  }
  return { kind: 'quote', blocks: parse(quoted, depth + 1), end };
}

/** The cells of a table's row; `\|` is a bar inside a cell. */
function cells(line) {
  const bare = line.trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1');
  return bare.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function table(lines, at) {
  if (!lines[at].includes('|') || at + 1 >= lines.length) return null;
  const marks = cells(lines[at + 1]);
  const head = cells(lines[at]);
  if (!lines[at + 1].includes('-') || marks.length !== head.length || !marks.every((mark) => DELIMITER_CELL.test(mark))) return null;
  const alignment = marks.map((mark) => {
    const [left, right] = [mark.startsWith(':'), mark.endsWith(':')];
    if (left && right) return 'center';
    return right ? 'right' : null;
  });
  const rows = [];
  let end = at + 2;
  while (end < lines.length && !isBlank(lines[end]) && lines[end].includes('|')) {
    const row = cells(lines[end]);
    rows.push(head.map((_, column) => row[column] ?? ''));
    end += 1;
  }
  return { kind: 'table', head, rows, alignment, end };
}

function list(lines, at, depth) {
  const first = depth < DEPTH && ITEM.exec(lines[at]);
  if (!first) return null;
  const ordered = /\d/.test(first[2]);
  const kind = first[2].at(-1);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const match = ITEM.exec(lines[end]);
    if (!match || match[2].at(-1) !== kind) break;
    const content = match[1].length + match[2].length + match[3].length;
    const item = [match[4]];
    end += 1;
    let next = end;
    while (next < lines.length) {
      const line = lines[next];
      const indent = line.length - line.trimStart().length;
      if (isBlank(line)) {
        next += 1;
        continue;
      }
      // Two spaces suffice below a longer marker, as many models write; text right below goes on with the item.
      const nested = indent >= Math.min(content, 2);
      const lazy = next === end && !startsBlock(lines, next);
      if (!nested && !lazy) break;
      while (end < next) {
        item.push('');
        end += 1;
      }
      item.push(line.slice(Math.min(indent, content)));
      next += 1;
      end = next;
    }
    items.push(parse(item, depth + 1));
    if (next < lines.length && ITEM.test(lines[next])) end = next;
  }
  return { kind: 'list', ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, items, end };
}

function startsBlock(lines, at) {
  return FENCE.test(lines[at]) || HEADING.test(lines[at]) || RULE.test(lines[at]) || QUOTE.test(lines[at]) || ITEM.test(lines[at]) || table(lines, at) !== null;
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !startsBlock(lines, end)) end += 1;
  return { kind: 'paragraph', text: lines.slice(at, end).join('\n'), end };
}
