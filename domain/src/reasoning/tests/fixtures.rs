//! What a text becomes, and that no split changes it.

use super::*;

/// Name, text, answer.
const FIXTURES: &[(&str, &str, &str)] = &[
    ("plain", "Hello, 世界.", "Hello, 世界."),
    ("trimmed", " \n Hello \n", "Hello"),
    ("empty", "", ""),
    ("block", "<think>hm</think>Yes", "Yes"),
    ("block and lines", "<think>\nhm\n</think>\n\nYes", "Yes"),
    ("only a block", "<think>hm</think>\n", ""),
    ("empty block", "<think></think>Yes", "Yes"),
    (
        "relatives",
        "<thinking>a</thinking><reasoning>b</reasoning><thought>c</thought><reflection>d</reflection>Yes",
        "Yes",
    ),
    (
        "more relatives",
        "<scratchpad>a</scratchpad><antThinking>b</antThinking><seed:think>c</seed:think>Yes",
        "Yes",
    ),
    ("upper case", "<THINK>hm</Think>Yes", "Yes"),
    (
        "attributes",
        "<think effort=\"high\" id=1>hm</think>Yes",
        "Yes",
    ),
    (
        "quoted end mark",
        "<think note=\"a > b\">hm</think>Yes",
        "Yes",
    ),
    ("white space in the tag", "< think >hm</ think\n>Yes", "Yes"),
    (
        "closes itself",
        "Yes <think/> and <thinking a='b' /> no",
        "Yes and no",
    ),
    ("nested", "<think>a<think>b</think>c</think>Yes", "Yes"),
    (
        "nested otherwise",
        "<think>a<reflection>b</reflection>c</think>Yes",
        "Yes",
    ),
    ("inner never closed", "<think>a<thought>b</think>Yes", "Yes"),
    ("names confused", "<think>a</thinking>Yes", "Yes"),
    (
        "overlapping",
        "<think>a<reasoning>b</think>Yes</reasoning>!",
        "Yes!",
    ),
    (
        "closed itself within",
        "<think>a<think/>b</think>Yes",
        "Yes",
    ),
    ("unclosed", "Yes.\n<think>hm, and then", "Yes."),
    ("unclosed at once", "<think>hm", ""),
    ("lone closing tag", "</think>\n\nYes", "Yes"),
    ("lone closing tag within", "Yes</thinking>!", "Yes!"),
    (
        "lone closing tag within a line",
        "One </think> two",
        "One two",
    ),
    ("lone closing tag at the end", "Yes.\n</think>\n", "Yes."),
    (
        "reasoning that the prompt opened",
        "hm\n</think>\n\nYes",
        "Yes",
    ),
    ("the same at once", "hm</think>\nYes", "Yes"),
    (
        "the same before a fence",
        "a `` b\n</think>\n```\n</think>\n```",
        "```\n</think>\n```",
    ),
    (
        "the same with a code span before it",
        "`</think>` hm\n</think>\nYes",
        "Yes",
    ),
    (
        "a lone closing tag behind a block",
        "<think>a</think>One\n</think>\ntwo",
        "One\ntwo",
    ),
    (
        "lone closing tags and no answer",
        "Yes.\n</think>\n</think>\n<think>hm",
        "Yes.",
    ),
    ("magistral", "[THINK]hm [x][/THINK]Yes", "Yes"),
    (
        "magistral in lower case is text",
        "[think] [T [THIS] a[",
        "[think] [T [THIS] a[",
    ),
    ("magistral behind a bracket", "a[[THINK]b[[/THINK]c", "a[c"),
    ("magistral in code", "`[THINK]` is it", "`[THINK]` is it"),
    ("kimi", "◁think▷hm◁/think▷Yes", "Yes"),
    ("kimi in a fence", "```\n◁think▷\n```", "```\n◁think▷\n```"),
    (
        "a bracket in an attribute",
        "<think a=\"[x]\">hm</think>Yes",
        "Yes",
    ),
    (
        "harmony",
        "<|channel|>analysis<|message|>hm <think>x<|end|><|start|>assistant<|channel|>final<|message|>Yes<|return|>",
        "Yes",
    ),
    (
        "harmony without a channel",
        "<|start|>assistant<|message|>Yes<|end|>",
        "Yes",
    ),
    (
        "harmony with a call",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "",
    ),
    (
        "harmony in code",
        "Write `<|channel|>` so",
        "Write `<|channel|>` so",
    ),
    ("harmony cut off", "Yes <|channel|>anal", "Yes"),
    (
        "two blocks",
        "<think>a</think>One <think>b</think>two",
        "One two",
    ),
    ("in the middle", "One <think>b</think> two", "One two"),
    ("space only before", "One <think>b</think>two", "One two"),
    ("space only behind", "One<think>b</think> two", "One two"),
    ("no space", "One<think>b</think>two", "Onetwo"),
    (
        "between paragraphs",
        "One\n\n<think>b</think>\n\nTwo",
        "One\n\nTwo",
    ),
    ("between lines", "One\n<think>b</think>\nTwo", "One\nTwo"),
    (
        "indentation behind stays",
        "- One\n<think>b</think>\n  - Two",
        "- One\n  - Two",
    ),
    (
        "more lines before",
        "One\n\n<think>b</think> Two",
        "One\n\nTwo",
    ),
    (
        "many in a row",
        "One <think>a</think> <think>b</think> <think/> two",
        "One two",
    ),
    ("before punctuation", "One <think>b</think>.", "One ."),
    (
        "other tags",
        "<thinker>a</thinker> <b>x</b> <thin k>",
        "<thinker>a</thinker> <b>x</b> <thin k>",
    ),
    (
        "ordinary words in tags",
        "<reason>404</reason>",
        "<reason>404</reason>",
    ),
    (
        "less than",
        "a < b, a <= b, x<y>z, 1 <",
        "a < b, a <= b, x<y>z, 1 <",
    ),
    ("unfinished tag", "Yes <think", "Yes <think"),
    ("unfinished closing tag", "Yes </think ", "Yes </think"),
    ("unfinished within", "<think>a</thin", ""),
    ("tag in a tag", "a <think <think>b</think> c", "a <think c"),
    ("tag made by removal", "<thi<think/>nk>a</think>b", "b"),
    (
        "tag made by removing a block",
        "<th<think>x</think>ink>a</think>b",
        "b",
    ),
    ("tag made twice", "<thi<th<think/>ink/>nk>a", ""),
    ("not made by removal", "<thi<think/>ck>a", "<thick>a"),
    ("in double brackets", "<<think>a</think>>", "<>"),
    ("less than and a block", "1 < <think>a</think> 2", "1 < 2"),
    (
        "inline code",
        "Models write `<think>`.",
        "Models write `<think>`.",
    ),
    (
        "inline code with a pair",
        "`<think>x</think>` is it",
        "`<think>x</think>` is it",
    ),
    (
        "two backticks",
        "``a ` <think> b`` c",
        "``a ` <think> b`` c",
    ),
    ("over a line", "`a\n<think> b` c", "`a\n<think> b` c"),
    ("block behind inline code", "`a` <think>x</think>b", "`a` b"),
    (
        "literal backtick",
        "A ` is a mark. <think>x</think> So",
        "A ` is a mark. So",
    ),
    (
        "literal backtick, next paragraph",
        "A ` mark <think>x\n\ny`</think> So",
        "A ` mark So",
    ),
    (
        "literal backtick, tag in the next paragraph",
        "A ` mark\n\n<think>a`b</think>So",
        "A ` mark\n\nSo",
    ),
    (
        "literal run, then a span",
        "a `` b ` <think> ` c",
        "a `` b ` <think> ` c",
    ),
    (
        "a span, then a literal run",
        "a ` b ` `` <think> c",
        "a ` b ` ``",
    ),
    (
        "runs of other lengths",
        "a `` b ` <think> ``` c",
        "a `` b `",
    ),
    (
        "next item ends the span",
        "- a ` b <think>x</think>\n- c ` d",
        "- a ` b\n- c ` d",
    ),
    (
        "numbered item ends the span",
        "1. a ` b <think>x</think>\n2. c ` d",
        "1. a ` b\n2. c ` d",
    ),
    (
        "heading ends the span",
        "a ` b <think>x</think>\n# c ` d",
        "a ` b\n# c ` d",
    ),
    (
        "code in a heading",
        "# A `<think>` tag\nb",
        "# A `<think>` tag\nb",
    ),
    (
        "escaped backtick",
        "a \\` b <think>x</think> ` c",
        "a \\` b ` c",
    ),
    (
        "escaped backslash",
        "a \\\\`<think>` c",
        "a \\\\`<think>` c",
    ),
    (
        "backslash in code",
        "`a\\` <think>x</think>b` c",
        "`a\\` b` c",
    ),
    ("inline code at the end", "Use `<think>`", "Use `<think>`"),
    ("unmatched at the end", "Use ` <think>", "Use `"),
    (
        "two tags in a span",
        "`<think> <think>` x",
        "`<think> <think>` x",
    ),
    (
        "tag in a span, tag behind",
        "`<think>` <think>x</think>y",
        "`<think>` y",
    ),
    (
        "fence",
        "```xml\n<think>x</think>\n```\nYes",
        "```xml\n<think>x</think>\n```\nYes",
    ),
    (
        "tilde fence",
        "~~~\n<think>\n~~~\nYes",
        "~~~\n<think>\n~~~\nYes",
    ),
    (
        "tilde fence with backticks in its info",
        "~~~ a`b\n<think>\n~~~\nYes",
        "~~~ a`b\n<think>\n~~~\nYes",
    ),
    (
        "block behind a fence",
        "```\na\n```\n<think>x</think>\nYes",
        "```\na\n```\nYes",
    ),
    (
        "block before a fence",
        "<think>x</think>```\n<think>\n```",
        "```\n<think>\n```",
    ),
    (
        "indented fence",
        "x\n   ```\n   <think>\n   ```\na<think>b",
        "x\n   ```\n   <think>\n   ```\na",
    ),
    (
        "indented too far",
        "a\n\n    ``` <think>x</think>\n    b",
        "a\n\n    ```\n    b",
    ),
    (
        "longer fence",
        "````\n```\n<think>\n````\na<think>b",
        "````\n```\n<think>\n````\na",
    ),
    (
        "other fence within",
        "```\n~~~\n<think>\n```\na<think>b",
        "```\n~~~\n<think>\n```\na",
    ),
    (
        "a closing fence has no info",
        "```\n``` x\n<think>\n```\na<think>b",
        "```\n``` x\n<think>\n```\na",
    ),
    (
        "closing fence with spaces",
        "```\na\n```  \n<think>b",
        "```\na\n```",
    ),
    (
        "unclosed fence",
        "```\n<think>a</think>",
        "```\n<think>a</think>",
    ),
    (
        "tag on the fence's line",
        "``` <think>\na\n```\nb",
        "``` <think>\na\n```\nb",
    ),
    (
        "no fence but a span",
        "```<think>``` a <think>b</think>c",
        "```<think>``` a c",
    ),
    (
        "fence in the middle of a line",
        "a ```<think>``` b",
        "a ```<think>``` b",
    ),
    (
        "fence ends a literal run",
        "a ` <think>x</think>\n```\n`\n```",
        "a `\n```\n`\n```",
    ),
    (
        "fence in a list",
        "- a\n\n  ```\n  <think>\n  ```\n- b<think>c",
        "- a\n\n  ```\n  <think>\n  ```\n- b",
    ),
    (
        "fence deep in a list",
        "1. a\n   - b\n\n     ```\n     <think>\n     ```\nc<think>d",
        "1. a\n   - b\n\n     ```\n     <think>\n     ```\nc",
    ),
    (
        "fence beside a marker",
        "- ```\n  <think>\n  ```\nb<think>c",
        "- ```\n  <think>\n  ```\nb",
    ),
    (
        "fence in a quote",
        "> ```\n> <think>\n> ```\n> a<think>b",
        "> ```\n> <think>\n> ```\n> a",
    ),
    (
        "quote ends the fence",
        "> ```\n> a\n<think>b</think>c",
        "> ```\n> a\nc",
    ),
    (
        "emphasis is no list",
        "**a** `b` <think>x</think>c",
        "**a** `b` c",
    ),
    ("fence in the reasoning", "<think>```\na</think>Yes", "Yes"),
    (
        "closed fence in the reasoning",
        "<think>```\n</think>\n```\nYes",
        "```\nYes",
    ),
    (
        "inline code in the reasoning",
        "<think>`</think>` Yes",
        "` Yes",
    ),
    (
        "a block between two spans",
        "`a`<think>x</think>`b <think>y</think>`",
        "`a` `b <think>y</think>`",
    ),
    (
        "code judged without the reasoning",
        "a\n<think>x</think>```\n<think>\n```",
        "a\n```\n<think>\n```",
    ),
    (
        "windows lines",
        "```\r\n<think>\r\n```\r\n<think>x</think>\r\nYes\r\n",
        "```\r\n<think>\r\n```\r\nYes",
    ),
    (
        "wide spaces",
        "\u{3000}是 <think>想</think>\u{3000}的",
        "是\u{3000}的",
    ),
];

#[test]
fn reasoning_is_removed_and_code_stays() {
    for (name, text, answer) in FIXTURES {
        assert_eq!(&clean(text), answer, "{name}");
    }
}

#[test]
fn every_split_in_two_and_three_and_one_by_one_gives_the_same() {
    for (name, text, _) in FIXTURES {
        let whole = stream([*text]);
        assert_eq!(stream(chars(text)), whole, "{name}, one by one");
        let ends = boundaries(text);
        for &first in &ends {
            for &second in ends.iter().filter(|second| **second >= first) {
                let parts = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(stream(parts), whole, "{name}: {parts:?}");
            }
        }
    }
}

#[test]
fn what_is_clean_stays_as_it_is() {
    for (name, text, _) in FIXTURES {
        let once = clean(text);
        assert_eq!(clean(&once), once, "{name}");
    }
}
