// Groups a session's stored messages into turns.

/**
 * One group per turn, in order: `{ turnId?, question?, name?, answer?, partial, calls, lastSeq }`. Imported messages have no turn: a user
 * message opens a group, what follows belongs to it.
 */
export function turnsOf(messages) {
  const groups = [];
  const byTurn = new Map();
  for (const message of messages) {
    const group = groupOf(message, groups, byTurn);
    if (!group) continue;
    group.lastSeq = message.seq;
    if (message.role === 'user') {
      group.question = message.content;
      group.name = message.name;
    } else if (message.role === 'assistant') {
      for (const call of message.tool_calls ?? []) group.calls.push({ id: call.id, name: call.function?.name ?? call.name });
      // An assistant message that calls tools is a step; only the one without calls is the answer.
      if (!message.tool_calls?.length) {
        group.answer = message.content;
        group.partial = Boolean(message.partial);
      }
    } else if (message.role === 'tool') {
      const call = group.calls.find((one) => one.id === message.tool_call_id);
      if (call) call.answered = true;
    }
  }
  return groups;
}

function groupOf(message, groups, byTurn) {
  if (message.role === 'system') return null;
  if (message.turn_id && byTurn.has(message.turn_id)) return byTurn.get(message.turn_id);
  const last = groups.at(-1);
  const opens = message.turn_id || message.role === 'user' || !last || last.turnId || last.answer !== undefined;
  if (!opens) return last;
  const group = { turnId: message.turn_id, calls: [], partial: false };
  groups.push(group);
  if (message.turn_id) byTurn.set(message.turn_id, group);
  return group;
}
