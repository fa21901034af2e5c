#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use proptest::prelude::*;

fn one(text: &str) -> Statement {
    let mut all = statements(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all.remove(0)
}

#[test]
fn standing_preferences_are_recognised_in_both_languages() {
    for (text, key) in [
        ("I prefer answers as tables", Some("answer_format")),
        ("Answer as tables.", Some("answer_format")),
        ("Please answer as tables", Some("answer_format")),
        ("please always answer in Chinese", Some("answer_language")),
        (
            "From now on, keep your answers short",
            Some("answer_length"),
        ),
        ("I don't like coffee.", Some("taste_coffee")),
        ("I like coffee!", Some("taste_coffee")),
        ("Call me Bob", Some("form_of_address")),
        ("By the way, you can call me Al.", Some("form_of_address")),
        ("Please don't use emojis", None),
        ("My favourite colour is green", Some("favorite_colour")),
        ("Remember that I prefer dark mode", Some("taste_dark_mode")),
        ("我喜欢用表格回答", Some("answer_format")),
        ("以后请用表格回答", Some("answer_format")),
        ("请用中文回答。", Some("answer_language")),
        ("用表格回答", Some("answer_format")),
        ("我不喜欢咖啡", Some("taste_咖啡")),
        ("我喜欢咖啡！", Some("taste_咖啡")),
        ("请叫我小明", Some("form_of_address")),
        ("请不要用表情符号", None),
        ("以后，请用表格回答", Some("answer_format")),
        ("From now on use metric units", None),
        ("我最喜欢的颜色是绿色", Some("favorite_颜色")),
        (
            "I prefer the metric system",
            Some("taste_the_metric_system"),
        ),
        ("I like listening to jazz", Some("taste_listening_to_jazz")),
        ("Going forward, tables only, please", Some("answer_format")),
        ("Ｉ　ｐｒｅｆｅｒ　ｔａｂｌｅｓ", Some("answer_format")),
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.scope, found.key.as_deref()),
            (Kind::Preference, Scope::UserProfile, key),
            "{text}"
        );
    }
}

#[test]
fn plain_statements_are_recognised_with_what_they_are_about() {
    use Kind::{Decision, Fact, TemporaryState};
    use Scope::{ProjectContext, TaskState, UserProfile};
    for (text, kind, scope, key) in [
        ("My budget is 300k", Fact, ProjectContext, Some("budget")),
        (
            "The budget is now 400k.",
            Fact,
            ProjectContext,
            Some("budget"),
        ),
        (
            "Our deploy target is Kubernetes",
            Fact,
            ProjectContext,
            Some("deploy_target"),
        ),
        (
            "The project deadline is Friday",
            Fact,
            ProjectContext,
            Some("deadline"),
        ),
        ("My name is Bob", Fact, UserProfile, Some("name")),
        ("My dog's name is Rex", Fact, UserProfile, Some("dog_name")),
        ("I live in Paris", Fact, UserProfile, Some("home")),
        ("I'm a nurse", Fact, UserProfile, None),
        (
            "Please remember that the office closes at six",
            Fact,
            ProjectContext,
            None,
        ),
        (
            "We decided to use PostgreSQL",
            Decision,
            ProjectContext,
            None,
        ),
        ("We’ve decided on Rust.", Decision, ProjectContext, None),
        (
            "I'm currently migrating the database",
            TemporaryState,
            TaskState,
            None,
        ),
        ("项目预算是30万", Fact, ProjectContext, Some("budget")),
        ("预算现在改成40万", Fact, ProjectContext, Some("budget")),
        ("我的名字是小明", Fact, UserProfile, Some("name")),
        ("我叫小明", Fact, UserProfile, Some("name")),
        ("我住在上海", Fact, UserProfile, Some("home")),
        ("我对花生过敏", Fact, UserProfile, None),
        ("我在一家银行工作", Fact, UserProfile, Some("employer")),
        ("我们决定用 PostgreSQL", Decision, ProjectContext, None),
        ("我正在写论文", TemporaryState, TaskState, None),
        ("请记住，会议在周五", Fact, ProjectContext, None),
        ("请记住：周五开会", Fact, ProjectContext, None),
        (
            "Remember: the key is under the mat",
            Fact,
            ProjectContext,
            None,
        ),
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.scope, found.key.as_deref()),
            (kind, scope, key),
            "{text}"
        );
    }
}

#[test]
fn questions_quotations_and_the_talk_at_hand_state_nothing() {
    for text in [
        "Do you think I prefer tables?",
        "I prefer tables, right?",
        "What is my budget",
        "我的预算是多少",
        "我喜欢什么颜色？",
        "She said \"I prefer tables\".",
        "他说：“我喜欢表格”",
        "> I prefer tables",
        "```\nI prefer tables\n```",
        "If my budget is 300k we are fine",
        "Alice likes tea",
        "I like it!",
        "I love your answer",
        "我喜欢你的回答",
        "My question is about tea",
        "我的问题是这样的",
        "I'm a bit tired",
        "Call me back tomorrow",
        "The weather is nice",
        "今天天气很好",
        "Answer the following, please.",
        "Never mind",
        "He always gives me work",
        "always gives me work",
        "I love the actors",
        "Remember to buy milk",
        "I love to",
        "以后再说",
        "From now on.",
        "Thanks!",
        "",
    ] {
        assert_eq!(statements(text), [], "{text}");
    }
}

#[test]
fn the_words_are_the_persons_own_and_each_statement_stands_alone() {
    let all = statements(
        "Thanks for that, I prefer answers as tables, especially for numbers. By the way, my name is Bob and I live in Paris!",
    );
    let words: Vec<&str> = all.iter().map(|s| s.content.as_str()).collect();
    assert_eq!(
        words,
        [
            "I prefer answers as tables, especially for numbers",
            "my name is Bob",
            "I live in Paris"
        ]
    );
    let all = statements("你好，我叫小明，我住在上海。以后请用表格回答！");
    let words: Vec<&str> = all.iter().map(|s| s.content.as_str()).collect();
    assert_eq!(words, ["我叫小明", "我住在上海", "以后请用表格回答"]);
}

#[test]
fn what_is_longer_than_200_characters_is_left_to_the_message() {
    assert_eq!(statements(&format!("I prefer {}", "tea ".repeat(60))), []);
}

proptest! {
    #[test]
    fn any_text_is_survived_and_every_statement_is_in_it(
        text in "(\\PC|I prefer |my name is |, | and |。|，|我喜欢|以后请|Ｉ ｌｉｋｅ |’|“|remember that ){0,30}",
    ) {
        for statement in statements(&text) {
            prop_assert!(text.contains(&statement.content), "{:?}", statement);
            prop_assert!(statement.content.chars().count() <= LONGEST);
            prop_assert!((3..=5).contains(&statement.importance));
            prop_assert!(statement.key.is_none_or(|k| !k.is_empty()));
        }
    }
}
