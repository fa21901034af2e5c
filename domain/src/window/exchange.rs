//! Makes one exchange fit.

use super::{DropReason, Dropped, OVERHEAD, TokenCounter, begins, cut_middle};
use crate::session::{Message, Role};

/// No text is cut below this before all are cut to it, in tokens. Ours: less tells a model nothing.
const FLOOR: usize = 64;

/// What is cut first: tool results, which can be had again; then the model's words; the person's last.
const ORDER: [fn(&Message) -> bool; 3] = [
    |m| m.role == Role::Tool,
    |m| m.role == Role::Assistant,
    begins,
];

/// An exchange as it is shown.
pub(super) struct Fitted {
    pub(super) messages: Vec<Message>,
    pub(super) tokens: usize,
    pub(super) cut: Vec<i64>,
    pub(super) dropped: Vec<Dropped>,
}

struct Line<'a> {
    message: &'a Message,
    /// What it costs whatever its content is.
    fixed: usize,
    content: String,
    tokens: usize,
}

/// The exchange within `limit` tokens, if that is possible at all.
pub(super) fn fit(exchange: &[Message], limit: usize, counter: &dyn TokenCounter) -> Fitted {
    let mut lines: Vec<Line> = exchange
        .iter()
        .map(|message| Line {
            message,
            fixed: fixed_cost(message, counter),
            content: message.content.clone(),
            tokens: counter.count(&message.content),
        })
        .collect();
    let dropped = drop_rounds(&mut lines, limit);
    for floor in [FLOOR, 1] {
        for class in ORDER {
            shorten(&mut lines, class, floor, limit, counter);
        }
    }
    Fitted {
        tokens: total(&lines),
        cut: lines
            .iter()
            .filter(|line| line.content != line.message.content)
            .map(|line| line.message.seq)
            .collect(),
        messages: lines
            .into_iter()
            .map(|line| Message {
                content: line.content,
                ..line.message.clone()
            })
            .collect(),
        dropped,
    }
}

fn fixed_cost(message: &Message, counter: &dyn TokenCounter) -> usize {
    let text = |text: &Option<String>| text.as_deref().map_or(0, |t| counter.count(t));
    let calls: usize = message
        .tool_calls
        .iter()
        .map(|call| {
            OVERHEAD
                + counter.count(&call.id)
                + counter.count(&call.name)
                + counter.count(&call.arguments)
        })
        .sum();
    OVERHEAD + calls + text(&message.name) + text(&message.tool_call_id)
}

fn total(lines: &[Line]) -> usize {
    lines.iter().map(|line| line.fixed + line.tokens).sum()
}

/// Takes the oldest tool rounds out until the rest can fit with its texts cut.
fn drop_rounds(lines: &mut Vec<Line>, limit: usize) -> Vec<Dropped> {
    let mut dropped: Vec<Dropped> = Vec::new();
    while lines
        .iter()
        .map(|l| l.fixed + l.tokens.min(1))
        .sum::<usize>()
        > limit
    {
        let Some(start) = lines.iter().position(|l| !l.message.tool_calls.is_empty()) else {
            break;
        };
        let results = lines[start + 1..]
            .iter()
            .take_while(|l| l.message.role == Role::Tool)
            .count();
        let round: Vec<Line> = lines.drain(start..=start + results).collect();
        dropped.extend(
            round
                .first()
                .zip(round.last())
                .map(|(first, last)| Dropped {
                    from_seq: first.message.seq,
                    to_seq: last.message.seq,
                    reason: DropReason::LongExchange,
                }),
        );
    }
    dropped
}

/// Cuts the longest texts of a class to one length, as far as it takes to reach the limit, but not below the floor.
fn shorten(
    lines: &mut [Line],
    class: fn(&Message) -> bool,
    floor: usize,
    limit: usize,
    counter: &dyn TokenCounter,
) {
    let excess = total(lines).saturating_sub(limit);
    if excess == 0 {
        return;
    }
    let mut lengths: Vec<usize> = lines
        .iter()
        .filter(|line| class(line.message))
        .map(|line| line.tokens)
        .collect();
    let room = lengths.iter().sum::<usize>().saturating_sub(excess);
    let length = common_length(&mut lengths, room).max(floor);
    for line in lines
        .iter_mut()
        .filter(|line| class(line.message) && line.tokens > length)
    {
        line.content = cut_middle(&line.message.content, length, counter);
        line.tokens = counter.count(&line.content);
    }
}

/// The greatest length to which texts can be cut so that together they fit into `room`.
fn common_length(lengths: &mut [usize], room: usize) -> usize {
    lengths.sort_unstable();
    let mut room = room;
    for (index, length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - index);
        if *length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}
