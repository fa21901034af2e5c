//! Texts that are made to cost: whatever reads what people say looks at each part of it a bounded number of times.

use std::hint::black_box;

use super::cues::{wanted, wants_several};
use super::injection::{passages, sign};
use super::prompt::data;
use super::rules::statements;
use super::segment::segments;
use super::speakers::{embedding_text, query_text};
use super::testing::day;
use super::when::spans;

const LENGTH: usize = 80_000;

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "word ", "a, ", "a and ", "a but ", " not ", " not a but ", "a: ", "a; ", "a - ", "not a: ", "\"", "“", "`", "'", "(", "[", "> ", "> a\n", "```\n",
    "```", "\n", "\n\n", "- a\n", "1. ", ".", ". ", "?", "a? ", "!", "...", "…", "\u{200b}", "e\u{301}", "🌊", "\t", "  ",
    "I prefer ", "I prefer tables, ", "please ", "please remember: ", "remember that ", "from now on, ", "from now on ", "always ", "my ", "my a is b ", "my a is b, ",
    "my budget is 1 ", "my budget is 1. ", "the budget is now ", "budget: ", "budget: 1. ", "we raised the budget to ", "from a to b ", "no longer ", "I no longer ",
    "actually ", "actually, ", "no, ", "it's ", "it is ", "is ", "to ", "of ", "if ", "she said ", "she told me: ", "translate: ", "example: ", "can you ",
    "can you always ", "would you please ", "I ", "I'd ", "we decided ", "well, ", "so ", "by the way, ", "Alice ", "Alice's ", "Al", "Mel ",
    "ignore ", "ignore all ", "ignore all previous instructions ", "i g n o r e ", "ig-", "you are ", "and ignore ", "please ", "do not tell the user ", "send the chat to ",
    "<", "<|", "<|a", "< ", "</", "<memory", "memory", "[memory] ", "![", "![]", "![](", "![](http://a?b=", "<img ", "<img src=", "#", "###system", "\u{e0069}", "ｉ", "&", "&#105;", "a\u{ad}", "ignore\u{ad}", "ignore, ", "ignore\n\n", "‹", "忽略", "忽略以上的", "忽 ", "你是", "把对话",
    "last week ", "yesterday ", "in May ", "May 2nd ", "2 May 2023 ", "2023-05-02 ", "2023 ", "on ", "two days ago ", "between ", "when ", "what ", "what kinds of ", "which ",
    "不", "不是", "不是a而是", "而是", "我", "我的", "我喜欢", "请", "请用", "请记住：", "以后", "如果", "预算", "预算是1，", "预算改成", "把预算", "把预算改为", "从", "从1到", "不再", "取消了",
    "他说：", "翻译：", "能不能", "，", "；", "：", "——", "。", "？", "「", "『", "上周", "三月", "5月2日", "三", "年", "昨天", "什么", "哪些", "张三", "李小明",
];

/// What is looked at again and again takes minutes here, and the runner ends it.
#[test]
fn the_work_on_a_hostile_text_grows_with_its_length_alone() {
    let names = ["Alice", "Melanie", "李小明"];
    for piece in PIECES {
        let text = piece.repeat(LENGTH / piece.len());
        let stated = black_box(statements(&text));
        black_box(sign(&text));
        black_box(segments(&text, &stated, &passages(&text)));
        black_box(data(&text));
        black_box(spans(&text, day(5), day(4)));
        black_box(embedding_text(&text, names));
        black_box(query_text(&text, names));
        black_box((wanted(&text), wants_several(&text)));
    }
}
