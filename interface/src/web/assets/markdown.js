// Draws answers as DOM nodes: nothing is ever parsed as HTML, and links lead to http and https only.

import { copyText, element } from './dom.js';
import { bind } from './i18n.js';
import { blocksOf } from './markdown_blocks.js';

// Spans are bounded in length so that an unclosed mark in a long text costs no quadratic search.
const INLINE = new RegExp(
  [
    /(?<ticks>`+)(?<code>[^`]|[^`][\s\S]{0,2000}?[^`])\k<ticks>(?!`)/,
    /\*\*(?=\S)(?<bold>[\s\S]{0,2000}?\S)\*\*/,
    /(?<![*\w])\*(?=[^\s*])(?<stressed>[^*\n]{0,1000}?[^\s*])\*(?![*\w])/,
    /(?<![_\w])_(?=[^\s_])(?<emphasis>[^_\n]{0,1000}?[^\s_])_(?![_\w])/,
    /~~(?=\S)(?<struck>[^~\n]{0,1000}?\S)~~/,
    // An image is never loaded: whoever sent it would learn who reads it, and when. Its address is shown as a link.
    /!?\[(?<label>[^[\]\n]{1,1000})\]\((?<target>[^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)(?:\s+"[^"\n]*")?\)/,
    /(?<bare>\bhttps?:\/\/[^\s<>"'`，。；：！？（）【】「」]+)/,
  ]
    .map((part) => part.source)
    .join('|'),
  'g',
);

/** Shows a text in `root` and, given a longer or other text, draws only the blocks that changed. */
export class MarkdownView {
  constructor(root) {
    this.root = root;
    this.drawn = [];
  }

  show(text) {
    const blocks = blocksOf(text);
    rank(blocks);
    let same = 0;
    while (same < blocks.length && same < this.drawn.length && equal(blocks[same], this.drawn[same])) same += 1;
    while (this.root.childNodes.length > same) this.root.lastChild.remove();
    this.root.append(...blocks.slice(same).map(draw));
    this.drawn = blocks;
  }
}

const equal = (one, other) => one.kind === other.kind && one.source === other.source && one.rank === other.rank;

/** The level above an answer's first: the question's. */
const QUESTION_RANK = 2;
const LOWEST_RANK = 6;

/** Headings descend by one at a time, whatever a model writes: readers who jump from heading to heading miss none. */
function rank(blocks) {
  let above = QUESTION_RANK;
  for (const block of blocks) {
    if (block.kind !== 'heading') continue;
    block.rank = Math.min(QUESTION_RANK + block.level, above + 1, LOWEST_RANK);
    above = block.rank;
  }
}

function draw(block) {
  switch (block.kind) {
    case 'code':
      return codeBlock(block);
    case 'heading':
      return element(`h${block.rank ?? QUESTION_RANK + 1}`, {}, ...inline(block.text));
    case 'list':
      return listBlock(block);
    case 'table':
      return tableBlock(block);
    case 'quote':
      return element('blockquote', {}, ...block.blocks.map(draw));
    case 'rule':
      return element('hr');
    default:
      return element('p', {}, ...inline(block.text));
  }
}

function codeBlock({ language, code }) {
  const copy = bind(element('button', { type: 'button', className: 'copy-code text-button' }), 'copy');
  copy.addEventListener('click', () => copyText(code, copy));
  const bar = element('div', { className: 'code-bar' }, element('span', {}, language), copy);
  return element('div', { className: 'code' }, bar, element('pre', { tabindex: '0' }, element('code', {}, code)));
}

function listBlock({ ordered, start, items }) {
  const entries = items.map((blocks) =>
    // A one-paragraph item stays tight; anything longer keeps its blocks.
    element('li', {}, ...blocks.flatMap((block, index) => (index === 0 && block.kind === 'paragraph' ? inline(block.text) : [draw(block)]))),
  );
  return element(ordered ? 'ol' : 'ul', { start: ordered && start !== 1 ? String(start) : undefined }, ...entries);
}

function tableBlock({ head, rows, alignment }) {
  const row = (tag, values) =>
    element('tr', {}, ...values.map((value, column) => element(tag, { className: alignment[column] && `align-${alignment[column]}` }, ...inline(value))));
  const body = element('tbody', {}, ...rows.map((values) => row('td', values)));
  const table = element('table', {}, element('thead', {}, row('th', head)), body);
  return element('div', { className: 'table', tabindex: '0' }, table);
}

/** The nodes of a run of text: code, bold, links, and text as it is. */
function inline(text) {
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) nodes.push(text.slice(at, match.index));
    nodes.push(...span(match));
    at = match.index + match[0].length;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

function span(match) {
  const { code, bold, stressed, emphasis, struck, label, target, bare } = match.groups;
  if (code !== undefined) return [element('code', {}, code)];
  if (bold !== undefined) return [element('strong', {}, ...inline(bold))];
  if (stressed !== undefined || emphasis !== undefined) return [element('em', {}, ...inline(stressed ?? emphasis))];
  if (struck !== undefined) return [element('del', {}, ...inline(struck))];
  if (bare !== undefined) {
    const url = bare.replace(/[.,;:!?)\]*]+$/, '');
    return [link(url, url) ?? url, bare.slice(url.length)];
  }
  return [link(target, label) ?? match[0]];
}

function link(target, label) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return null;
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return null;
  return element('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, label);
}
