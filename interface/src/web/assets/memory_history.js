// The history of a memory: its versions with what made each, what took its place, and the messages behind it.

import { element } from './dom.js';
import { bind } from './i18n.js';
import { historyOf } from './memory_api.js';
import { timeOf, word } from './words.js';

/** Values that a person sees change from one version to the next. */
const TOLD = ['content', 'scope', 'kind', 'state', 'importance', 'pinned'];

/** Shows in `root` how the memory came to be as it is; `openSource({ session_id, seq, turn_id })` leads to a message. */
export async function showHistory(root, id, openSource) {
  root.replaceChildren(bind(element('p', { className: 'loading' }), 'loading'));
  const { versions, superseded_by: successor, supersedes, messages } = await historyOf(id);
  const parts = [section('history_versions', versions.map((version, at) => versionRow(version, versions[at + 1])))];
  if (successor) parts.push(section('history_successor', [factRow(successor)]));
  if (supersedes.length > 0) parts.push(section('history_supersedes', supersedes.map(factRow)));
  if (messages.length > 0) {
    // Of a message only its turn tells the session; the memory's sources know it by the message's id.
    const sessions = new Map(versions[0].memory.sources.map((source) => [source.message_id, source.session_id]));
    parts.push(section('history_messages', messages.map((message) => messageRow(message, sessions.get(message.id), openSource))));
  }
  root.replaceChildren(...parts);
}

function section(key, rows) {
  return element('section', {}, bind(element('h3', {}), key), element('ol', { className: 'history-list' }, ...rows));
}

function versionRow({ memory, change }, earlier) {
  const head = element('p', { className: 'history-head' });
  if (change) head.append(word(element('span', {}), 'op', change.op), ' · ', word(element('span', {}), 'change', change.kind), ' · ', timeOf(change.at));
  else head.append(bind(element('span', {}), 'op_indexed'), ' · ', timeOf(memory.created_at));
  const row = element('li', {}, head);
  const told = earlier ? TOLD.filter((name) => memory[name] !== earlier.memory[name]) : ['content'];
  for (const name of told) row.append(valueLine(name, memory[name]));
  return row;
}

function valueLine(name, value) {
  const line = element('p', { className: 'history-value', dir: 'auto' });
  if (name === 'content') line.append(value);
  else if (name === 'pinned') bind(line, value ? 'pinned' : 'unpinned');
  else if (name === 'importance') bind(line, `importance_${value}`);
  else word(line, name, value);
  return line;
}

function factRow(memory) {
  return element('li', {}, element('p', { className: 'history-value', dir: 'auto' }, memory.content), element('p', { className: 'history-head' }, timeOf(memory.valid_from)));
}

function messageRow(message, sessionId, openSource) {
  const head = element('p', { className: 'history-head' });
  if (message.name) head.append(message.name);
  else head.append(word(element('span', {}), 'role', message.role));
  head.append(' · ', timeOf(message.created_at));
  const row = element('li', {}, head, element('p', { className: 'history-value history-message', dir: 'auto' }, message.content));
  if (sessionId && openSource) {
    const button = bind(element('button', { type: 'button', className: 'text-button' }), 'open_source');
    button.addEventListener('click', () => openSource({ ...message, session_id: sessionId }));
    row.append(button);
  }
  return row;
}
